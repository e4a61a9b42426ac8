"""Sort keys of boxes: Morton codes of their centroids, extended by their size.

A code is made of one triple x, y, z a level of a cubic grid, coarsest first, and after each of the
first `size_bits` levels one bit of the box's largest extent, in the same units: whether the box is
about as large as that level's cells. Large boxes so part from small ones beside them, which a
plain code (`size_bits` 0) mixes into every node. Source: Vinkler, Bittner, Havran 2017, "Extended
Morton Codes for High Performance Bounding Volume Hierarchy Construction".

The grid is a cube over the longest axis, not stretched to the box: cells stay cubes, so that
nearness in the code is nearness in space.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.scene_box import centroids

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


def morton(
    parameters: NDArray[Any], state: NDArray[Any], boxes: F32, keys: U32, payload: U32
) -> None:
    """Twin of morton.wgsl: key and index of every box kept."""
    count, words = int(state["kept"][0]), int(parameters["key_words"][0])
    bits, size_bits = int(parameters["grid_bits"][0]), int(parameters["size_bits"][0])
    every = boxes[: 6 * count].reshape(count, 2, 3)
    normalise, scale = state["normalise"][0], state["scale"][0]
    centre = centroids(every)
    quarter = np.float32(0.25)  # centroids are eighths of min + max
    size = (every[:, 1] * quarter - every[:, 0] * quarter).max(axis=1)
    # Twice the grid's extent at most, so that normalising cannot overflow.
    widest = np.uint32(min(254, 255 - int(normalise.view(np.uint32) >> 23)) << 23)
    size = np.clip(size, np.float32(0), widest.view(np.float32))
    place = np.concatenate([centre - state["low"][0], size[:, None]], axis=1) * normalise
    cell = np.minimum((place * scale).astype(np.uint32), np.uint32((1 << bits) - 1))
    code = np.zeros(count, np.uint64)
    for level in range(bits):
        bit = (cell >> np.uint32(bits - 1 - level) & np.uint32(1)).astype(np.uint64)
        for part in range(4 if level < size_bits else 3):
            code = code << np.uint64(1) | bit[:, part]
    out = keys[: count * words].reshape(count, words)
    for word in range(words):
        out[:, word] = code >> np.uint64(32 * word) & np.uint64(0xFFFFFFFF)
    payload[:count] = np.arange(count)
