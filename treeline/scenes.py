"""Scenes by name: the embedded hall, files, and the square light of the command line."""

import math
from pathlib import Path

import numpy as np

from engine.gpu.errors import UserError
from engine.scene.light import RectLight
from engine.scene.load import load_scene
from engine.scene.scene import Scene
from treeline.version import ROOT

EMBEDDED = ROOT / "assets" / "hall.glb"

# Radiance times area of a light from --light: a white surface that faces it from two metres away
# has radiance about 1 (irradiance pi), whatever the light's size.
LIGHT_RADIANCE_AREA = 4 * math.pi


def load(path: str | Path | None = None) -> Scene:
    """The scene in a file, or the embedded one. Raises UserError for a bad file."""
    return load_scene(EMBEDDED if path is None else path)


def square_light(text: str) -> RectLight:
    """`X,Y,Z,SIDE` in metres: a square around (X, Y, Z) whose lower side shines.

    Raises UserError where that is not four finite numbers or the side is not positive.
    """
    try:
        x, y, z, side = (float(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"a light is X,Y,Z,SIDE in metres, not '{text}'") from None
    if not all(map(math.isfinite, (x, y, z, side))) or side <= 0:
        raise UserError(f"a light needs finite numbers and a side above 0, not '{text}'")
    radiance = LIGHT_RADIANCE_AREA / (side * side)
    return RectLight(
        center=np.array([x, y, z]),
        half_u=np.array([side / 2, 0.0, 0.0]),
        half_v=np.array([0.0, 0.0, side / 2]),
        radiance=(radiance, radiance, radiance),
    )
