"""Boxes of triangles, and which triangles have none: non-finite and exactly degenerate ones.

A triangle is degenerate where the float32 cross product of two of its edges is exactly zero, as in
`bvh.triangles.is_degenerate`; here its coordinates are scaled first by the power of two that
brings the largest to [1, 2), so that neither overflow nor underflow decides. Below 2^-64 of its
largest coordinate a triangle's products are denormal, which adapters may flush.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import REMOVED_DEGENERATE, REMOVED_NONFINITE

F32 = NDArray[np.float32]


def triangle_setup(
    parameters: NDArray[Any], triangles: F32, triangle_boxes: F32, state: NDArray[Any]
) -> None:
    """Twin of triangle_setup.wgsl: `triangles` nine float32 each, `triangle_boxes` six
    (zeros without a sign). Clears `state` for this build."""
    state[:] = 0
    count = int(parameters["count"][0])
    corners = triangles[: 9 * count].reshape(count, 3, 3)
    exponent = corners.view(np.uint32) >> np.uint32(23) & np.uint32(0xFF)
    finite = np.asarray((exponent < 0xFF).all(axis=(1, 2)))
    corners = np.where(finite[:, None, None], corners, np.float32(0))
    largest = np.clip(exponent.max(axis=(1, 2), initial=0), 1, 253).astype(np.uint32)
    factor = ((np.uint32(254) - largest) << np.uint32(23)).view(np.float32)
    scaled = corners * factor[:, None, None]
    e, f = scaled[:, 1] - scaled[:, 0], scaled[:, 2] - scaled[:, 0]
    degenerate = np.ones(count, np.bool_)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        degenerate &= e[:, j] * f[:, k] == e[:, k] * f[:, j]
    out = triangle_boxes[: 6 * count].reshape(count, 2, 3)
    out[:, 0] = corners.min(axis=1)
    out[:, 1] = corners.max(axis=1)
    out[out == 0] = 0
    for removed, reason in (
        (degenerate & finite, REMOVED_DEGENERATE),
        (~finite, REMOVED_NONFINITE),
    ):
        out[removed, 0] = 1
        out[removed, 1] = -reason
