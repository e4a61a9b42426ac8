"""Scenes by name: the embedded hall, files, and the square light of the command line.

A scene file names the embedded models as `embedded:hall.glb`. In its masks bit 0 is that of primary
rays, bit 1 + i that of ray type i of the frame.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bvh.coordinate_range import check_range
from engine.gpu.errors import UserError
from engine.scene.asset_folders import asset_folders
from engine.scene.light import RectLight
from engine.scene.load import load_scene
from engine.scene.scene import Scene
from passes.frame_options import PRIMARY
from passes.placing import SMALLEST_REACH, WORLD_REACH
from passes.rays import RAY_TYPES
from treeline.version import ROOT

F32 = NDArray[np.float32]

EMBEDDED = ROOT / "assets" / "hall.glb"

# Radiance times area of a light from --light: a white surface that faces it from two metres away
# has radiance about 1 (irradiance pi), whatever the light's size.
LIGHT_RADIANCE_AREA = 4 * math.pi


RAY_BITS = {PRIMARY: 1, **{ray_type.name: 2 << i for i, ray_type in enumerate(RAY_TYPES)}}


def load(
    path: str | Path | None = None, assets: Sequence[str] = (), *, allow_outside: bool = False
) -> Scene:
    """The scene in a file, or the embedded one. `assets` are folders that a scene file's paths may
    lead to, `FOLDER` or `NAME=FOLDER`; `allow_outside` lets them lead anywhere. Raises UserError
    for a bad file."""
    folders = asset_folders(assets, allow_outside)
    folders = replace(folders, named={"embedded": EMBEDDED.parent, **folders.named})
    return load_scene(EMBEDDED if path is None else path, folders, RAY_BITS)


def baked_triangles(scene: Scene) -> F32:
    """[n, 3, 3] world-space triangles of every instance. UserError where they are outside the range
    of `bvh.coordinate_range`."""
    parts = []
    for instance in scene.instances:
        mesh = scene.meshes[instance.mesh]
        matrix = np.asarray(instance.transform, np.float64)
        points = mesh.positions @ matrix[:3, :3].T + matrix[:3, 3]
        parts.append(points[mesh.triangles])
    triangles = np.concatenate(parts)
    check_range(triangles)
    return triangles.astype(np.float32)


def square_light(text: str) -> RectLight:
    """`X,Y,Z,SIDE` in metres: a square around (X, Y, Z) whose lower side shines.

    Raises UserError where that is not four finite numbers, or outside what a scene's geometry may
    reach (passes/placing.py).
    """
    try:
        x, y, z, side = (float(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"a light is X,Y,Z,SIDE in metres, not '{text}'") from None
    if not all(map(math.isfinite, (x, y, z, side))) or side <= 0:
        raise UserError(f"a light needs finite numbers and a side above 0, not '{text}'")
    if not SMALLEST_REACH <= side <= WORLD_REACH or max(map(abs, (x, y, z))) > WORLD_REACH:
        raise UserError(
            f"a light's side is {SMALLEST_REACH:.2g} to {WORLD_REACH:.2g} m, and it lies as far "
            f"from the origin at most, not '{text}'"
        )
    radiance = LIGHT_RADIANCE_AREA / (side * side)
    return RectLight(
        center=np.array([x, y, z]),
        half_u=np.array([side / 2, 0.0, 0.0]),
        half_v=np.array([0.0, 0.0, side / 2]),
        radiance=(radiance, radiance, radiance),
    )
