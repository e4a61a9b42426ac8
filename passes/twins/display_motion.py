"""Twin of display_motion.wgsl: direction as hue, length as brightness."""

from typing import Any

import numpy as np

from passes.twins.gbuffer import tile_pixels
from passes.twins.wgsl_functions import F32, clamp, length, store_unorm

# Of red, green and blue: a third of a turn apart.
DIRECTIONS = np.array([[1.0, 0.0], [-0.5, 0.8660254], [-0.5, -0.8660254]], np.float32)


def display_motion(frame: Any, display: Any, motion: F32, shown: Any) -> None:
    pixels = tile_pixels(frame)
    moved = motion[pixels.index]
    size = length(moved)
    way = moved / np.where(size > 0.0, size, np.float32(1.0))[:, None]
    half = np.float32(0.5)
    bright = clamp(size / np.maximum(np.float32(display["high"]), np.float32(1.0e-6)), 0.0, 1.0)
    colors = np.asarray((half + half * (way @ DIRECTIONS.T)) * bright[:, None], np.float32)
    colors[size == 0.0] = 0.0
    store_unorm(shown, pixels, colors)
