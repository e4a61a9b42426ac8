"""Boxes of the two parts of a block that a plane cuts: twin of spatial_clip.wgsl.

A block is what lies between its corners, so that its part on one side is what lies between the
corners there and the points where lines between corners cross the plane. No division, which
adapters round differently: a reciprocal by Newton's steps from an integer's guess. A crossing point
is a few roundings off, so its box is made larger by more than these. Both parts keep within the box
that the reference had.
"""

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.spatial_records import CORNERS, CROSSING_ERROR

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_GUESS = np.uint32(0x7EF311C7)
_TWO = np.float32(2)


def reciprocal(value: F32) -> F32:
    """1 / value within 2^-21 for values whose exponent field is 16 to 240."""
    guess = (_GUESS - np.ascontiguousarray(value).view(np.uint32)).view(np.float32)
    for _ in range(3):
        guess = guess * (_TWO - value * guess)
    return np.asarray(guess, np.float32)


def clip_block(
    corners: F32, low: F32, high: F32, axis: I64, plane: F32
) -> tuple[F32, F32, F32, F32]:
    """(left low, left high, right low, right high) of blocks `[n, 5, 3]` within boxes, each cut
    by its plane. A side without anything of the block is inverted somewhere."""
    every = np.arange(len(corners))
    largest = np.finfo(np.float32).max
    left_low = np.full_like(low, largest)
    left_high = np.full_like(low, -largest)
    right_low, right_high = left_low.copy(), left_high.copy()

    def grow(side_low: F32, side_high: F32, rows: Mask, point_low: F32, point_high: F32) -> None:
        side_low[rows] = np.minimum(side_low[rows], point_low[rows])
        side_high[rows] = np.maximum(side_high[rows], point_high[rows])

    for i in range(CORNERS):
        a = corners[:, i]
        at = a[every, axis]
        grow(left_low, left_high, at <= plane, a, a)
        grow(right_low, right_high, at >= plane, a, a)
        for j in range(i + 1, CORNERS):
            b = corners[:, j]
            bt = b[every, axis]
            crosses = ((at < plane) & (bt > plane)) | ((at > plane) & (bt < plane))
            if not crosses.any():
                continue
            rows = np.flatnonzero(crosses)
            # From the lower end, so that the same edge gives the same point.
            swap = (at > bt)[rows, None]
            first, second = np.where(swap, b[rows], a[rows]), np.where(swap, a[rows], b[rows])
            where = axis[rows]
            k = np.arange(len(rows))
            length = second[k, where] - first[k, where]
            exponent = length.view(np.uint32) >> 23
            usable = (exponent >= 16) & (exponent <= 240)
            safe = np.where(usable, length, np.float32(1))
            share = (plane[rows] - first[k, where]) * reciprocal(safe)
            point = first + (second - first) * share[:, None]
            error = np.maximum(np.abs(first), np.abs(second)) * np.float32(CROSSING_ERROR)
            point_low = np.where(usable[:, None], point - error, np.minimum(first, second))
            point_high = np.where(usable[:, None], point + error, np.maximum(first, second))
            point_low[k, where] = point_high[k, where] = plane[rows]
            for side_low, side_high in ((left_low, left_high), (right_low, right_high)):
                side_low[rows] = np.minimum(side_low[rows], point_low)
                side_high[rows] = np.maximum(side_high[rows], point_high)
    return (
        np.maximum(left_low, low),
        np.minimum(left_high, high),
        np.maximum(right_low, low),
        np.minimum(right_high, high),
    )
