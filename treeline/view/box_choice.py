"""Which boxes of many a frame draws: in view, large enough to be seen, and of too many the largest.

Spheres around the boxes stand for them: one product with the view matrix for all.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.scene.camera import Camera

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

SMALLEST_PIXELS = 1.5  # across a box: below, it is a dot that hides what is around it


@dataclass(frozen=True, slots=True)
class DrawBudget:
    """What a frame may spend on lines, and what they take: microseconds a box, and a pixel that a
    box is across."""

    rest_ms: float
    moving_ms: float
    box_us: float
    pixel_us: float


# The first was measured at 960x540 on llvmpipe, two cores. The second is an estimate: 48 corners a
# box at some 2e10 corners a second.
CPU_BUDGET = DrawBudget(rest_ms=80.0, moving_ms=25.0, box_us=12.0, pixel_us=0.2)
GPU_BUDGET = DrawBudget(rest_ms=0.5, moving_ms=0.5, box_us=0.003, pixel_us=0.0002)


def choose_boxes(
    centres: F32,
    radii: F32,
    camera: Camera,
    size: tuple[int, int],
    budget: DrawBudget,
    spend_ms: float,
) -> U32:
    """Indices, in order, of the boxes that a frame from `camera` draws."""
    return affordable(pixels_across(centres, radii, camera, size), budget, spend_ms, size)


def affordable(pixels: F32, budget: DrawBudget, spend_ms: float, size: tuple[int, int]) -> U32:
    """Indices, in order, of the boxes at least SMALLEST_PIXELS across; of too many the largest."""
    worth = np.flatnonzero(pixels >= SMALLEST_PIXELS)
    most = int(1e3 * spend_ms / budget.box_us)
    if len(worth) > most:
        worth = worth[np.argpartition(pixels[worth], len(worth) - most)[len(worth) - most :]]
    # A box that reaches out of the picture costs no more than one that fills it.
    inside = np.minimum(pixels[worth], float(max(size)))
    cost_ms = 1e-3 * (budget.box_us + budget.pixel_us * inside.astype(np.float64))
    if cost_ms.sum() > spend_ms:
        largest = np.argsort(-inside, kind="stable")
        worth = worth[largest[np.cumsum(cost_ms[largest]) <= spend_ms]]
    return np.sort(worth).astype(np.uint32)


def pixels_across(centres: F32, radii: F32, camera: Camera, size: tuple[int, int]) -> F32:
    """[n] how many pixels spheres of world `centres [3, n]` and `radii` [n] are across; 0 for those
    outside the view, infinite around the camera."""
    view = camera.view_matrix().astype(np.float32)
    x, y, z = view[:3, :3] @ centres + view[:3, 3:]
    distance = -z
    slope_y = float(np.tan(camera.y_fov / 2))
    slope_x = slope_y * size[0] / size[1]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        across = radii * np.float32(size[1] / slope_y) / distance
    across[distance <= radii] = np.inf
    outside = distance < -radii
    for along, slope in ((np.abs(x), slope_x), (np.abs(y), slope_y)):
        # Beyond a side plane, which leaves the camera at that slope.
        outside |= along - np.float32(slope) * distance > radii * np.float32(np.hypot(1.0, slope))
    across[outside] = 0.0
    return np.asarray(across)
