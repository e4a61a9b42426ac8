"""What the tests of light that is remembered share: a frame's size, cameras, errors."""

from dataclasses import replace
from typing import Any

import numpy as np

from engine.scene.camera import Camera

SIZE = (44, 32)
FOUND = 0.02  # frames, of a length that bilinear weights and halves round


def shifted(camera: Camera, *by: float) -> Camera:
    """Moved in its own space: right, up, back."""
    matrix = np.eye(4)
    matrix[:3, 3] = by
    return replace(camera, transform=camera.transform @ matrix)


def error(picture: Any, reference: Any) -> float:
    """Root of the mean square, of the reference's mean."""
    return float(np.sqrt(np.mean((picture - reference) ** 2)) / reference.mean())
