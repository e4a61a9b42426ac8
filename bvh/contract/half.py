"""binary16 as the layout uses it: directed rounding of bounds and the A16 operand order.

Rounding works on the bits alone, so that it needs no rounding mode and no float16 hardware: the
magnitude is cut to the target's precision, and one unit is added when anything was cut and the
wanted side is away from zero. Beyond 65504 the outer side becomes infinite and the inner side
65504 (inferred); NaN stays a quiet NaN.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError

F32 = NDArray[np.float32]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]

HALF_INFINITY = 0x7C00
HALF_MAX = 0x7BFF
HALF_NAN = 0x7E00
_HIDDEN = 0x00800000
# float32 exponent field of binary16's smallest normal number, and of its first overflow.
_SMALLEST_NORMAL = 127 - 14
_OVERFLOW = 127 + 16


def round_down(values: F32) -> U16:
    """binary16 bits, the largest half that is not above each value; any shape."""
    return _round(values, downward=True)


def round_up(values: F32) -> U16:
    """binary16 bits, the smallest half that is not below each value; any shape."""
    return _round(values, downward=False)


def _round(values: F32, *, downward: bool) -> U16:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.int64)
    magnitude = bits & 0x7FFFFFFF
    negative = bits >> 31 == 1
    exponent = magnitude >> 23
    mantissa = np.where(exponent > 0, magnitude & 0x7FFFFF | _HIDDEN, magnitude & 0x7FFFFF)
    # Bits below the half's last place: 13 in the normal range, more among its denormals. A shift
    # of 24 already cuts the whole mantissa.
    cut = 13 + np.clip(_SMALLEST_NORMAL - np.maximum(exponent, 1), 0, 11)
    kept = mantissa >> cut
    inexact = (kept << cut) != mantissa
    # Among the normals, the hidden bit (1 << 10) adds one to the exponent field, hence the - 1.
    half = kept + (np.maximum(exponent - _SMALLEST_NORMAL, 0) << 10)
    half += inexact & (negative == downward)
    beyond = exponent >= _OVERFLOW
    outer = np.where(negative == downward, HALF_INFINITY, HALF_MAX)
    half = np.where(beyond, outer, half)
    half = np.where(magnitude == 0x7F800000, HALF_INFINITY, half)
    half = np.where(magnitude > 0x7F800000, HALF_NAN, half)
    return (half | negative.astype(np.int64) << 15).astype(np.uint16)


def pack_bounds(minimum: Any, maximum: Any) -> U32:
    """Three words a box `[..., 3]` from bounds `[..., 3]`, rounded outward."""
    low = round_down(np.asarray(minimum, np.float32)).astype(np.uint32)
    high = round_up(np.asarray(maximum, np.float32)).astype(np.uint32)
    halves = np.concatenate([low, high], axis=-1)
    return np.asarray(halves[..., 0::2] | halves[..., 1::2] << np.uint32(16), np.uint32)


def pack_a16(order: str, direction: Any, inverse_direction: Any) -> U32:
    """The three operand words of an A16 instruction. `gfx10` (inferred for RDNA2): direction xyz,
    then inverse xyz, two a word; `gfx11`: direction and inverse of one axis a word."""
    with np.errstate(over="ignore"):
        d = np.asarray(direction, np.float16).view(np.uint16).astype(np.uint32)
        i = np.asarray(inverse_direction, np.float16).view(np.uint16).astype(np.uint32)
    if order == "gfx10":
        halves = np.concatenate([d, i], axis=-1)
        return np.asarray(halves[..., 0::2] | halves[..., 1::2] << np.uint32(16), np.uint32)
    if order == "gfx11":
        return np.asarray(d | i << np.uint32(16), np.uint32)
    raise UserError(f"unknown A16 order '{order}' (gfx10 or gfx11)")
