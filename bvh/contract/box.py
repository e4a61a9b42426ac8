"""The box node: four slab tests, the descriptor's growth, and the sorting network.

float32, one rounding an operation, in the order written. Minimum and maximum are minNum and
maxNum: a NaN operand is ignored. GPURT's emulation treats NaN so (observed); the language of the
chapter's helper leaves it open, and hardware is unknown. Two rule sets:

chapter (KytyPS5): hit if exit >= 0, entry < extent and entry <= grown exit, where growth adds g
ULPs to the exit's bits. Sort keys are the bits of max(entry, 0), a miss is infinite.

gpurt (AMD's emulation): entry is clamped to 0 and exit to the extent, hit if
entry <= exit * (1 + g * 2^-24), extent inclusive. A slot whose pointer is 0xffffffff sinks.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract.cases import BLOCK_WORDS, NODE_WORDS, Rules

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Mask = NDArray[np.bool_]

INFINITY_BITS = np.uint32(0x7F800000)
GROWTH_STEP = np.float32(2.0**-24)  # gpurt: relative growth a ULP of the field
# Comparators (left, right) in order.
CHAPTER_NETWORK = ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2))
GPURT_NETWORK = ((0, 2), (1, 3), (0, 1), (2, 3), (1, 2))


def read_boxes(words: U32, half: Mask) -> tuple[U32, F32, F32]:
    """Child pointers `[n, 4]`, minima and maxima `[n, 4, 3]` of nodes `[n, 32]`; `half` says which
    are FP16. Halves convert exactly."""
    first, slots = layout.BOX_BOUNDS_WORD, layout.BOX_WIDTH
    wide = words[:, first : layout.BOX_FP32_TAIL_WORD].reshape(-1, slots, 6)
    bounds = np.ascontiguousarray(wide).view(np.float32)
    narrow = words[half, first:BLOCK_WORDS].reshape(-1, slots, layout.BOX_FP16_CHILD_WORDS)
    with np.errstate(invalid="ignore"):
        bounds[half] = np.concatenate(layout.unpack_half_bounds(narrow), axis=-1)
    return words[:, :slots], bounds[..., :3], bounds[..., 3:]


def intersect_boxes(
    words: U32,
    half: Mask,
    extent: F32,
    origin: F32,
    inverse_direction: F32,
    growth: U32,
    sort: Mask,
    rules: Rules,
) -> U32:
    """The four result words `[n, 4]` of box nodes `[n, 32]`: child pointers, 0xffffffff for a
    child that is missed, sorted near to far where `sort`."""
    assert words.shape[1] == NODE_WORDS
    entry, exit_ = box_distances(words, half, origin, inverse_direction)
    children = words[:, : layout.BOX_WIDTH]
    finish = _chapter if rules == "chapter" else _gpurt
    with np.errstate(invalid="ignore", over="ignore"):
        return finish(children, entry, exit_, extent[:, None], growth, sort)


def box_distances(words: U32, half: Mask, origin: F32, inverse_direction: F32) -> tuple[F32, F32]:
    """Entry and exit of every slot `[n, 4]`, neither clamped nor grown; the same in both rules."""
    _, minimum, maximum = read_boxes(words, half)
    # 0 * infinity and infinity - infinity are meant: minimum and maximum ignore their NaN.
    with np.errstate(invalid="ignore", over="ignore"):
        origin, inverse = origin[:, None], inverse_direction[:, None]
        low = (minimum - origin) * inverse
        high = (maximum - origin) * inverse
        forward = inverse >= 0  # -0 counts as forward
        near, far = np.where(forward, low, high), np.where(forward, high, low)
        entry = np.fmax(np.fmax(near[..., 0], near[..., 1]), near[..., 2])
        exit_ = np.fmin(np.fmin(far[..., 0], far[..., 1]), far[..., 2])
    return entry, exit_


def _chapter(children: U32, entry: F32, exit_: F32, extent: F32, growth: U32, sort: Mask) -> U32:
    bits = np.where(exit_ == 0, np.float32(0), exit_).view(np.uint32)  # -0 would be a huge number
    grown = np.minimum(bits + growth[:, None], INFINITY_BITS).view(np.float32)
    hit = (exit_ >= 0) & (entry < extent) & (entry <= grown)
    key = np.where(hit, np.where(entry > 0, entry, np.float32(0)).view(np.uint32), INFINITY_BITS)
    result = np.where(hit, children, np.uint32(layout.INVALID_POINTER))
    for left, right in CHAPTER_NETWORK:
        _exchange(sort & (key[:, left] > key[:, right]), left, right, key, result)
    return result


def _gpurt(children: U32, entry: F32, exit_: F32, extent: F32, growth: U32, sort: Mask) -> U32:
    # A box whose three entries or three exits are all NaN is missed, whatever the other says.
    invalid = np.isnan(entry) | np.isnan(exit_)
    near = np.where(invalid, np.float32(np.inf), np.fmax(entry, np.float32(0)))
    far = np.where(invalid, np.float32(-np.inf), np.fmin(exit_, extent))
    factor = np.float32(1) + growth.astype(np.float32) * GROWTH_STEP
    empty = np.uint32(layout.INVALID_POINTER)
    result = np.where(near <= far * factor[:, None], children, empty)
    for left, right in GPURT_NETWORK:
        nearer = (result[:, right] != empty) & (near[:, right] < near[:, left])
        _exchange(sort & (nearer | (result[:, left] == empty)), left, right, near, result)
    return result


def _exchange(swap: Mask, left: int, right: int, *columns: NDArray[Any]) -> None:
    for values in columns:
        a, b = values[:, left].copy(), values[:, right].copy()
        values[:, left] = np.where(swap, b, a)
        values[:, right] = np.where(swap, a, b)
