"""Twin of borrowed.wgsl: what a sample of reflected light is worth to the mean over frames."""

from typing import Any

import numpy as np

from passes.twins.lobe_radius import lobe_radius
from passes.twins.wgsl_functions import F32

LEAST_WORTH = np.float32(0.0078125)
BORROWED_FRAMES = np.float32(2.0)


def sample_worth(
    frame: Any, roughness: F32, distance: F32, away: F32, frames: F32, block: int
) -> F32:
    """[n]"""
    radius = lobe_radius(frame, roughness, -distance, away) / np.float32(block)
    square = radius * radius
    alike = square * square / (square * square + np.float32(1.0))
    fades = BORROWED_FRAMES / (BORROWED_FRAMES + frames)
    worth = np.maximum(alike, LEAST_WORTH) * fades * fades
    return np.where(distance >= 0.0, np.float32(1.0), worth)
