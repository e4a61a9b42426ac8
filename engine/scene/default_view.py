"""What a file without a camera, an area light or an environment is seen with. No randomness.

Camera: a three-quarter view from (1, 0.75, 1.25) towards the centre of the scene's box, at a
vertical angle of 40 degrees, as near as keeps the whole box inside a square picture.

Light, when the file brings its own camera: rays along the view find what it looks at (the
"focus", at most one box diagonal away). Of three points on the way there, the one with most
free height above it is taken. A ceiling above it: a square that faces down just below that
ceiling. Open sky: a square above and on the camera's side of the focus, facing it. With the
default camera the scene is an object in the open, and its box takes the place of the focus.

Radiance is set so that a surface at the focus that faces the light gets an irradiance of about
pi: a white one then has radiance 1.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.scene.beam import beam_distances
from engine.scene.camera import NEAR_PER_DIAGONAL, Camera, look_at
from engine.scene.light import DEFAULT_ENVIRONMENT, RectLight
from engine.scene.mesh import F64, Mesh
from engine.scene.scene import Instance, Parts, Scene, scene_bounds

DEFAULT_Y_FOV = float(np.radians(40.0))
_VIEW_FROM = np.array([1.0, 0.75, 1.25])  # from the box's centre towards the camera
_MARGIN = 1.08  # empty border around the box in the picture
_STOPS = (0.4, 0.55, 0.7)  # where, on the way to the focus, a lamp may hang
_SPREAD = 0.02  # arm of the crosses of rays / distance that they measure
_BELOW_CEILING = 0.92  # height of the lamp / height of the ceiling above the line of sight
_LAMP_SIZE = 0.12  # half edge / distance of what it lights
_MIN_COSINE = 0.3  # of the angle between the lamp's axis and the focus, in the radiance rule
_UP = np.array([0.0, 1.0, 0.0])


def with_default_view(parts: Parts, name: str, sha256: str = "") -> Scene:
    """The Scene of `parts`; whatever the file lacks gets its default and is marked "default"."""
    box = scene_bounds(parts.meshes, parts.instances)
    diagonal = max(float(np.linalg.norm(box[1] - box[0])), 1e-6)
    camera = parts.camera or default_camera(box)
    camera = replace(camera, near=NEAR_PER_DIAGONAL * diagonal)
    lights = parts.lights
    if not lights and parts.camera is None:
        lights = (light_for_object(box, camera),)
    elif not lights:
        lights = (light_for_view(parts.meshes, parts.instances, camera, diagonal),)
    return Scene(
        name=name,
        meshes=parts.meshes,
        materials=parts.materials,
        textures=parts.textures,
        instances=parts.instances,
        camera=camera,
        light=lights[0],
        more_lights=lights[1:],
        environment=parts.environment or DEFAULT_ENVIRONMENT,
        camera_source="file" if parts.camera else "default",
        light_source="file" if parts.lights else "default",
        sha256=sha256,
        animation=parts.animation,
        camera_path=parts.camera_path and replace(parts.camera_path, near=camera.near),
        ray_bits=parts.ray_bits,
        notes=parts.notes,
    )


def default_camera(box: F64) -> Camera:
    """Three-quarter view of a world box [2, 3] that fits a picture of any width >= height."""
    center, half = box.mean(axis=0), np.maximum((box[1] - box[0]) / 2, 1e-6)
    # Very far out, rounding would take the step; the view is then turned as from the origin.
    near = center if np.abs(center).max() < 1e9 else np.zeros(3)
    camera = look_at(near + _VIEW_FROM, near, DEFAULT_Y_FOV)
    signs = np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), axis=-1).reshape(-1, 3)
    right, up, back = ((signs * half) @ camera.transform[:3, :3]).T
    reach = np.maximum(np.abs(right), np.abs(up)) / np.tan(DEFAULT_Y_FOV / 2)
    distance = float((back + _MARGIN * reach).max())
    transform = camera.transform.copy()
    transform[:3, 3] = center + transform[:3, 2] * distance
    return Camera(transform, DEFAULT_Y_FOV)


def light_for_object(box: F64, camera: Camera) -> RectLight:
    """A square above the box, moved towards the camera, that faces the box's centre."""
    center = box.mean(axis=0)
    diagonal = max(float(np.linalg.norm(box[1] - box[0])), 1e-6)
    towards = _level(-camera.forward)
    above = (box[1, 1] - center[1]) + 0.75 * diagonal
    position = center + _UP * above + towards * 0.4 * diagonal
    return _lamp(position, center - position, center, _LAMP_SIZE * 1.5 * diagonal)


def light_for_view(
    meshes: Sequence[Mesh], instances: Sequence[Instance], camera: Camera, diagonal: float
) -> RectLight:
    """A square below the ceiling in front of `camera`, or above what it looks at in the open."""
    start, forward = camera.position, camera.forward
    right, up = camera.transform[:3, 0], camera.transform[:3, 1]
    middle = beam_distances(meshes, instances, forward, start[None])[0]
    # a ray may slip through a gap: the median of a small cross around the middle decides
    spread = _SPREAD * (middle if np.isfinite(middle) else diagonal)
    around = start + spread * np.stack([0 * right, right, -right, up, -up])
    ahead = beam_distances(meshes, instances, forward, around)
    seen = ahead[np.isfinite(ahead)]
    distance = min(float(np.median(seen)), diagonal) if len(seen) else 0.5 * diagonal
    focus = start + forward * distance
    stops = [start + forward * distance * part for part in _STOPS]
    # a small cross above each stop: a lamp must not hang inside a beam or another lamp
    cross = _SPREAD * distance * np.array([[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 0, 1], [0, 0, -1]])
    heights = [beam_distances(meshes, instances, _UP, stop + cross).min() for stop in stops]
    best = int(np.argmax(heights))
    if np.isfinite(heights[best]):
        position = stops[best] + _UP * _BELOW_CEILING * heights[best]
        floor = beam_distances(meshes, instances, -_UP, stops[best][None])[0]
        reach = heights[best] + (floor if np.isfinite(floor) else 0.0)
        return _lamp(position, -_UP, focus, _LAMP_SIZE * float(reach))
    position = focus + distance * (0.9 * _UP + 0.4 * _level(-forward))
    return _lamp(position, focus - position, focus, _LAMP_SIZE * distance)


def _level(direction: F64) -> F64:
    """Unit horizontal part of `direction`; +Z for a vertical one."""
    flat = direction * (1.0, 0.0, 1.0)
    length = float(np.linalg.norm(flat))
    return flat / length if length > 1e-6 else np.array([0.0, 0.0, 1.0])


def _lamp(position: F64, axis: F64, focus: F64, half_edge: float) -> RectLight:
    """A square at `position` that emits along `axis` and gives `focus` an irradiance near pi.

    On the axis of a disc of area A at distance r the irradiance is L x pi x A / (A + pi r^2);
    solved for L, and divided by the cosine at which the lamp sees the focus.
    """
    normal = axis / np.linalg.norm(axis)
    helper = np.eye(3)[np.argmin(np.abs(normal))]
    u = np.cross(helper, normal)
    u /= np.linalg.norm(u)
    v = np.cross(normal, u)
    area = 4.0 * half_edge**2
    ray = focus - position
    distance = max(float(np.linalg.norm(ray)), half_edge)
    cosine = max(float(ray @ normal) / distance, _MIN_COSINE)
    radiance = (area + np.pi * distance**2) / (area * cosine)
    return RectLight(position, u * half_edge, v * half_edge, (radiance,) * 3)
