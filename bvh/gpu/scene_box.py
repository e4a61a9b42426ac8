"""The box around all centroids, and the cubic grid that Morton codes count in.

Centroids are an eighth of min + max: the factor is exact and the grid's extent cannot overflow. A
division may be off by a few ULP on a GPU, so the grid's scale comes from one integer division of
the extent's leading 12 bits, rounded so that the grid is at most 0.08% too coarse: codes are the
same on every adapter.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import LARGEST, TILE

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


def tile_count(count: int) -> int:
    """Workgroups of `scene_box`, one partial each."""
    return max(1, -(-count // TILE))


def centroids(boxes: F32) -> F32:
    """[n, 3] an eighth of min + max of boxes `[n, 2, 3]`."""
    eighth = np.float32(0.125)
    return np.asarray(boxes[:, 0] * eighth + boxes[:, 1] * eighth)


def scene_box(
    parameters: NDArray[Any], state: NDArray[Any], boxes: F32, partials: NDArray[Any]
) -> None:
    """Twin of scene_box.wgsl: one SCENE_PARTIAL a tile of boxes, empty past those kept."""
    kept = int(state["kept"][0])
    centre = centroids(boxes[: 6 * kept].reshape(kept, 2, 3))
    for tile in range(tile_count(int(parameters["count"][0]))):
        mine = centre[tile * TILE : (tile + 1) * TILE]
        partials["low"][tile] = mine.min(axis=0, initial=LARGEST)
        partials["high"][tile] = mine.max(axis=0, initial=-LARGEST)


def grid(
    parameters: NDArray[Any], partials: NDArray[Any], state: NDArray[Any], sort_count: U32
) -> None:
    """Twin of grid.wgsl: the grid's part of BUILD_STATE from the partials. Where all centroids are
    equal (or differ by denormals) the scale is zero and every code is. `sort_count` becomes what
    a sort of these boxes takes its length from."""
    count, bits = int(parameters["count"][0]), int(parameters["grid_bits"][0])
    sort_count[0] = min(int(state["kept"][0]), count)
    mine = partials[: tile_count(count)]
    low, high = mine["low"].min(axis=0), mine["high"].max(axis=0)
    extent = np.float32((high - low).max()) if state["kept"][0] else np.float32(0)
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
