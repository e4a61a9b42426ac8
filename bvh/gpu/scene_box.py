"""The box around all centroids, and the cubic grid that Morton codes count in.

Centroids are an eighth of min + max: the factor is exact and the grid's extent cannot overflow. A
division may be off by a few ULP on a GPU, so the grid's scale comes from one integer division of
the extent's leading 12 bits, rounded so that the grid is at most 0.08% too coarse: codes are the
same on every adapter.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import LARGEST, REMOVED_DEGENERATE, REMOVED_NONFINITE, TILE

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


def tile_count(count: int) -> int:
    """Workgroups of `scene_box`, one partial each."""
    return max(1, -(-count // TILE))


def centroids(boxes: F32) -> F32:
    """[n, 3] an eighth of min + max of boxes `[n, 2, 3]`."""
    eighth = np.float32(0.125)
    return np.asarray(boxes[:, 0] * eighth + boxes[:, 1] * eighth)


def scene_box(parameters: NDArray[Any], boxes: F32, partials: NDArray[Any]) -> None:
    """Twin of scene_box.wgsl: one SCENE_PARTIAL a tile of boxes."""
    count = int(parameters["count"][0])
    every = boxes[: 6 * count].reshape(count, 2, 3)
    kept = every[:, 0, 0] <= every[:, 1, 0]
    reason = np.where(kept, 0, -every[:, 1, 0])
    centre = centroids(every)
    for tile in range(tile_count(count)):
        part = slice(tile * TILE, (tile + 1) * TILE)
        mine = centre[part][kept[part]]
        partials["low"][tile] = mine.min(axis=0, initial=LARGEST)
        partials["high"][tile] = mine.max(axis=0, initial=-LARGEST)
        partials["degenerate"][tile] = (reason[part] == REMOVED_DEGENERATE).sum()
        partials["nonfinite"][tile] = (reason[part] == REMOVED_NONFINITE).sum()


def grid(
    parameters: NDArray[Any], partials: NDArray[Any], state: NDArray[Any], deepest: U32
) -> None:
    """Twin of grid.wgsl: unites the partials into the BUILD_STATE and clears `deepest` for this
    build. Where all centroids are equal (or differ by denormals) the scale is zero and every code
    is."""
    deepest[:2] = 0
    count, bits = int(parameters["count"][0]), int(parameters["grid_bits"][0])
    mine = partials[: tile_count(count)]
    degenerate, nonfinite = int(mine["degenerate"].sum()), int(mine["nonfinite"].sum())
    low, high = mine["low"].min(axis=0), mine["high"].max(axis=0)
    kept = count - degenerate - nonfinite
    extent = np.float32((high - low).max()) if kept else np.float32(0)
    pattern = int(extent.view(np.uint32))
    exponent = pattern >> 23
    normalise, scale = 0, np.float32(0)
    if exponent:
        normalise = (254 - exponent) << 23
        reciprocal = 0x1000000 // ((pattern >> 12 & 0x7FF | 0x800) + 1)
        scale = np.ldexp(np.float32(reciprocal), bits - 13)
    state["low"][0] = low
    state["normalise"][0] = np.uint32(normalise).view(np.float32)
    state["scale"][0] = scale
    state["kept"][0] = kept
    state["degenerate"][0] = degenerate
    state["nonfinite"][0] = nonfinite
