"""Morton order of up to SEGMENT boxes, all of it in one workgroup: centroid box, codes, sort.

Codes have ten bits an axis of a cubic grid over the centroids; equal codes keep their order. The
sort is bitonic (Batcher 1968, "Sorting networks and their applications"): for so few keys its
nine rounds in workgroup memory cost less than one dispatch of a radix sort.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

GRID_BITS = 10


def small_sort(parameters: NDArray[Any], segments: NDArray[Any], boxes: F32, order: U32) -> None:
    """Twin of small_sort.wgsl: `order[first : first + count]` of every segment."""
    every = boxes[: 6 * (len(boxes) // 6)].reshape(-1, 2, 3)
    eighth = np.float32(0.125)
    for segment in segments[: int(parameters["segments"][0])]:
        first, count = int(segment["first"]), int(segment["count"])
        box = every[first : first + count]
        if not count:
            continue
        centre = box[:, 0] * eighth + box[:, 1] * eighth
        low = centre.min(axis=0)
        pattern = int((centre.max(axis=0) - low).max().view(np.uint32))
        normalise = scale = np.float32(0)
        if pattern >> 23:
            normalise = np.uint32((254 - (pattern >> 23)) << 23).view(np.float32)
            reciprocal = 0x1000000 // (((pattern >> 12 & 0x7FF) | 0x800) + 1)
            scale = np.float32(reciprocal * 2.0 ** (GRID_BITS - 13))
        cell = (((centre - low) * normalise) * scale).astype(np.uint32)
        cell = np.minimum(cell, np.uint32((1 << GRID_BITS) - 1))
        key = np.zeros(count, np.uint32)
        for bit in range(GRID_BITS - 1, -1, -1):
            for axis in range(3):
                key = key << np.uint32(1) | (cell[:, axis] >> np.uint32(bit) & np.uint32(1))
        order[first : first + count] = first + np.argsort(key, kind="stable")
