"""Boxes of the two parts of a block that a plane cuts: twin of spatial_clip.wgsl.

A block is what lies between its corners, so that its part on one side is what lies between the
corners there and the points where lines between corners cross the plane. No division, which
adapters round differently: a reciprocal by Newton's steps from an integer's guess. A crossing point
is a few roundings off, so its box is made larger by more than these. Both parts keep within the box
that the reference had.
"""

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.binned_sah_records import ordered, value_of
from bvh.gpu.spatial_records import CORNERS, CROSSING_ERROR

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
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
    corners: F32, low: U32, high: U32, axis: I64, plane: F32
) -> tuple[U32, U32, U32, U32]:
    """(left low, left high, right low, right high) of blocks `[n, 5, 3]` within boxes, each cut
    by its plane; boxes are ordered. A side without anything of the block is inverted somewhere."""
    every = np.arange(len(corners))
    on_plane = ordered(plane)
    left_low, right_low = np.full((2, *low.shape), 0xFFFFFFFF, np.uint32)
    left_high, right_high = np.zeros((2, *low.shape), np.uint32)
    sides = ((left_low, left_high), (right_low, right_high))

    def grow(side: tuple[U32, U32], rows: I64, point_low: U32, point_high: U32) -> None:
        side[0][rows] = np.minimum(side[0][rows], point_low)
        side[1][rows] = np.maximum(side[1][rows], point_high)

    for i in range(CORNERS):
        a = corners[:, i]
        at = a[every, axis]
        point = ordered(a)
        for side, here in zip(sides, (at <= plane, at >= plane), strict=True):
            rows = np.flatnonzero(here)
            grow(side, rows, point[rows], point[rows])
        for j in range(i + 1, CORNERS):
            b = corners[:, j]
            bt = b[every, axis]
            crosses = ((at < plane) & (bt > plane)) | ((at > plane) & (bt < plane))
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
            middle = first + (second - first) * share[:, None]
            error = np.maximum(np.abs(first), np.abs(second)) * np.float32(CROSSING_ERROR)
            one, other = ordered(first), ordered(second)
            point_low = np.where(usable[:, None], ordered(middle - error), np.minimum(one, other))
            point_high = np.where(usable[:, None], ordered(middle + error), np.maximum(one, other))
            point_low[k, where] = point_high[k, where] = on_plane[rows]
            for side in sides:
                grow(side, rows, point_low, point_high)
    return (
        np.maximum(left_low, low),
        np.minimum(left_high, high),
        np.maximum(right_low, low),
        np.minimum(right_high, high),
    )


def is_box(low: U32, high: U32) -> Mask:
    """[n] whether ordered boxes are any, by value: -0 and 0 are one plane."""
    return np.asarray((value_of(low) <= value_of(high)).all(axis=1))
