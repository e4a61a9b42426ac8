"""Cuts between the bins of nodes, for the twins of the stages that choose one: the two sides of
every cut, its cost, the cheapest. The same as sah_bins.wgsl, sah_choice.wgsl and sah_slabs.wgsl.

Bins are `[nodes, axis, BINS]`, and a cut has the number of the last bin on its left.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.binned_sah_records import BINS, HALVED, TILE, scaled_area

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Records = NDArray[Any]
Mask = NDArray[np.bool_]
Sides = tuple[U32, U32, U32, U32]  # left low and high, right low and high

ALL = np.uint32(0xFFFFFFFF)
EMPTY_EXTENT = np.array([ALL, ALL, ALL, 0, 0, 0], np.uint32)
EMPTY_BIN = np.array([ALL, ALL, ALL, 0, 0, 0, 0], np.uint32)


def members(nodes: Records) -> tuple[Records, I64, I64]:
    """The listed nodes, and node by node the places of their primitives with their node's slot."""
    listed = nodes[1 : 1 + int(nodes["first"][0])]
    count = listed["count"].astype(np.int64)
    slot = np.repeat(np.arange(len(listed)), count)
    offset = np.arange(len(slot)) - np.repeat(np.cumsum(count) - count, count)
    return listed, slot, listed["first"].astype(np.int64)[slot] + offset


def tile_of(listed: Records, slot: I64, place: I64) -> I64:
    """The tile of every place of nodes' slots."""
    offset = place - listed["first"][slot]
    return np.asarray(listed["first_tile"][slot] + offset // TILE, np.int64)


def rank_in_node(listed: Records, slot: I64, taken: Mask) -> I64:
    """How many members of its node that are `taken` stand before each member."""
    before: I64 = np.cumsum(taken) - taken
    begin = np.cumsum(listed["count"], dtype=np.int64) - listed["count"]
    return before - before[begin.astype(np.int64)][slot] if len(slot) else before


def grow_boxes(table: U32, row: I64, low: U32, high: U32) -> None:
    """Unites boxes into the rows of a table of ordered boxes."""
    for axis in range(3):
        np.minimum.at(table[:, axis], row, low[:, axis])
        np.maximum.at(table[:, 3 + axis], row, high[:, axis])


def slab_steps(low: F32, high: F32) -> tuple[Mask, F32, F32]:
    """(whether an extent is open, power of two and factor that make slabs of a place in it)."""
    pattern = np.ascontiguousarray(high - low).view(np.uint32)
    exponent = pattern >> 23
    is_open = exponent > 0
    normalise = ((np.uint32(254) - exponent) << np.uint32(23)).view(np.float32)
    integer = 0x1000000 // ((pattern >> 12 & 0x7FF | 0x800) + 1)
    factor = integer.astype(np.float32) * np.float32(BINS / 8192)
    return is_open, np.where(is_open, normalise, np.float32(0)), factor


def cut_sides(low: U32, high: U32) -> Sides:
    """The boxes on both sides of every cut, of bins' boxes `[n, 3, BINS, 3]`."""
    left_low = np.minimum.accumulate(low, axis=2)
    left_high = np.maximum.accumulate(high, axis=2)
    right_low, right_high = np.full_like(low, ALL), np.zeros_like(high)
    back = np.s_[:, :, :0:-1]
    right_low[:, :, :-1] = np.minimum.accumulate(low[back], axis=2)[:, :, ::-1]
    right_high[:, :, :-1] = np.maximum.accumulate(high[back], axis=2)[:, :, ::-1]
    return left_low, left_high, right_low, right_high


def cut_costs(sides: Sides, left: I64, right: I64, scale: F32) -> F32:
    """Of every cut with so many primitives on its sides; `scale` (`area_scale`) is one a node."""
    wide = np.repeat(scale, 3 * BINS).reshape(-1, 3, BINS)
    with np.errstate(over="ignore", invalid="ignore"):  # empty boxes, whose cost is not looked at
        cost = scaled_area(sides[0], sides[1], wide) * left.astype(np.float32)
        cost = cost + scaled_area(sides[2], sides[3], wide) * right.astype(np.float32)
    return np.asarray(cost, np.float32)


def cheapest_cut(cost: F32, usable: Mask, uneven: I64) -> tuple[I64, Mask]:
    """(axis * BINS + bin, whether there is one); the evenest of equals, then the first."""
    key = np.where(usable, np.ascontiguousarray(cost).view(np.uint32), ALL).astype(np.uint64)
    key = (key << np.uint64(32) | uneven.astype(np.uint64)).reshape(len(cost), -1)
    best = np.argmin(key, axis=1)
    return best, usable.reshape(len(cost), -1)[np.arange(len(cost)), best]


def goes_left(axis: U32, last_bin: U32, left_count: U32, packed: U32, offset: I64) -> Mask:
    """Whether members of nodes with these cuts are on the left, by their packed bins or, where a
    node is HALVED, their place in it; as sah_sides.wgsl."""
    halved = axis == HALVED
    shift = np.where(halved, 0, 5 * axis).astype(np.uint32)
    return np.asarray(np.where(halved, offset < left_count, (packed >> shift & 31) <= last_bin))
