"""Bounds of every inner node from its range of leaves, by a pyramid of boxes over sorted leaves.

Level 0 of the pyramid is the leaves' boxes in sorted order, level k the union of each 2^k of
them. An LBVH node covers a run of leaves, which at most two blocks a level make up. So bounds need
neither arrival counters (wrong nodes on real GPUs, because one workgroup reads what another wrote
in the same dispatch) nor one dispatch a level of a tree whose depth only the GPU knows: three
dispatches make the pyramid of up to 16.7 million leaves and one asks it, all of sizes that the
host knows. Unions are exact, so the bounds are those of any bottom-up pass.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import LARGEST

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

LEVELS_PER_DISPATCH = 8


def pyramid_sizes(count: int) -> list[int]:
    """Boxes of every level, up to the one of a single box."""
    sizes = [count]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


def pyramid_dispatches(count: int) -> list[tuple[int, int]]:
    """(first level, boxes of that level) of every dispatch."""
    sizes = pyramid_sizes(count)
    firsts = range(0, max(1, len(sizes) - 1), LEVELS_PER_DISPATCH)
    return [(first, sizes[first]) for first in firsts]


def _union_pairs(boxes: F32) -> F32:
    if len(boxes) % 2:
        boxes = np.concatenate([boxes, boxes[-1:]])
    low = np.minimum(boxes[0::2, 0], boxes[1::2, 0])
    return np.stack([low, np.maximum(boxes[0::2, 1], boxes[1::2, 1])], axis=1)


def box_pyramid(
    parameters: NDArray[Any], state: NDArray[Any], boxes: F32, payload: U32, pyramid: F32
) -> None:
    """Twin of box_pyramid.wgsl: the level of `parameters` (0 is gathered from `boxes`) and up to
    eight above it. Places past what was kept hold an empty box."""
    count, first = int(parameters["count"][0]), int(parameters["level"][0])
    kept = int(state["kept"][0])
    sizes = pyramid_sizes(count)
    starts = np.cumsum(sizes) - sizes
    every = pyramid[: 6 * sum(sizes)].reshape(-1, 2, 3)
    if first == 0:
        every[:kept] = boxes[: 6 * count].reshape(count, 2, 3)[payload[:kept]]
        every[kept:count] = np.array([[LARGEST] * 3, [-LARGEST] * 3])
    for level in range(first + 1, min(first + LEVELS_PER_DISPATCH, len(sizes) - 1) + 1):
        below = every[starts[level - 1] : starts[level - 1] + sizes[level - 1]]
        every[starts[level] : starts[level] + sizes[level]] = _union_pairs(below)


def range_bounds(
    parameters: NDArray[Any], state: NDArray[Any], ranges: U32, pyramid: F32, bounds: F32
) -> None:
    """Twin of range_bounds.wgsl: six float32 a node."""
    count, kept = int(parameters["count"][0]), int(state["kept"][0])
    nodes = max(kept - 1, 1)
    every = pyramid.reshape(-1, 2, 3)
    out = bounds[: 6 * nodes].reshape(nodes, 2, 3)
    out[:, 0], out[:, 1] = LARGEST, -LARGEST
    left = ranges[: 2 * nodes : 2].astype(np.int64)
    right = ranges[1 : 2 * nodes : 2].astype(np.int64) + 1
    start = 0
    for size in pyramid_sizes(count):
        rows = np.flatnonzero((left < right) & (left % 2 == 1))
        _grow(out, rows, every[start + left[rows]])
        left[rows] += 1
        rows = np.flatnonzero((left < right) & (right % 2 == 1))
        right[rows] -= 1
        _grow(out, rows, every[start + right[rows]])
        left, right = left // 2, right // 2
        start += size


def _grow(bounds: F32, rows: NDArray[np.int64], boxes: F32) -> None:
    bounds[rows, 0] = np.minimum(bounds[rows, 0], boxes[:, 0])
    bounds[rows, 1] = np.maximum(bounds[rows, 1], boxes[:, 1])
