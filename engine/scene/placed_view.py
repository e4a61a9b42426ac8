"""Cameras and lights that models bring into a scene file, placed as their objects are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine.gpu.errors import UserError
from engine.scene.camera import Camera
from engine.scene.describe import Description
from engine.scene.light import RectLight
from engine.scene.mesh import F64
from engine.scene.scene import Parts


@dataclass(frozen=True, slots=True)
class Model:
    """A file of the scene by the name that `[files]` gives it."""

    name: str
    parts: Parts


def find_camera(
    path: object, description: Description, models: Mapping[str, Model]
) -> Camera | None:
    """The scene file's own, else one of a placed file's; None where there is none."""
    wanted, way = description.camera_object, description.camera_path
    if description.camera is not None:
        return description.camera
    if wanted is None and way is not None:
        return way.at(float(way.times[0]))
    for item in description.objects:
        camera = models[item.file].parts.camera
        if camera is not None and len(item.transforms) and wanted in (None, item.name):
            return placed_camera(camera, item.transforms[0])
    if wanted is not None:
        raise UserError(
            f"{path}: camera.object is '{wanted}', and nothing placed there has a camera"
        )
    return None


def placed_camera(camera: Camera, placement: F64) -> Camera:
    """A camera has no size, and no mirror image: a mirrored one looks the same way."""
    transform = placement @ camera.transform
    back, up = transform[:3, 2], transform[:3, 1]
    back = back / np.linalg.norm(back)
    right = np.cross(up, back)
    right /= np.linalg.norm(right)
    transform[:3, :3] = np.stack([right, np.cross(back, right), back], axis=1)
    return replace(camera, transform=transform)


def placed_light(light: RectLight, placement: F64) -> RectLight:
    """The rectangle moved with its object; it goes on shining to the same side of the object."""
    linear = placement[:3, :3]
    half_u, half_v = linear @ light.half_u, linear @ light.half_v
    if np.linalg.det(linear) < 0:  # u x v of a mirrored pair points to the other side
        half_v = -half_v
    return replace(
        light, center=linear @ light.center + placement[:3, 3], half_u=half_u, half_v=half_v
    )
