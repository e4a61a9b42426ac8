"""Twin of the sweep: nodes of at most SWEEP primitives to whole subtrees, in one dispatch.

Every lane holds one primitive and asks, for each axis, what it would cost to cut right after it in
the order of centroids, by looking at every primitive of its node: as many steps as the node has
primitives, but no sort, no scan and a handful of barriers a level. Equal costs go to the evenest
cut, then to the first axis, then to the first primitive.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.binned_sah_records import (
    SWEEP,
    WORK_WORDS,
    area_scale,
    centres,
    kept_count,
    most_below,
    scaled_area,
    value_of,
)
from bvh.gpu.binned_sah_stages import write_inner

U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Records = NDArray[Any]

_ALL = np.uint32(0xFFFFFFFF)
_CHUNK = 1 << 18  # primitives at a time, padded


def sah_sweep(
    parameters: Records,
    state: Records,
    heads: Records,
    work: U32,
    other_work: U32,
    children: I32,
    bounds: F32,
) -> None:
    """Twin of sah_sweep.wgsl: children and bounds of every node at and below `heads`."""
    kept, max_depth = kept_count(state), int(parameters["max_depth"][0])
    first = np.flatnonzero(heads["count"][:kept]).astype(np.int64)
    count = heads["count"][first].astype(np.int64)
    depth = heads["depth"][first].astype(np.int64)
    node = heads["id"][first].astype(np.int64)
    first_work = work.reshape(-1, WORK_WORDS)
    second_work = other_work.reshape(-1, WORK_WORDS)
    records = np.empty_like(first_work)
    place = np.repeat(first, count) + _ramp(count)
    odd = np.repeat(depth % 2 == 1, count)
    records[place] = np.where(odd[:, None], first_work[place], second_work[place])
    while len(first):
        left = np.empty(len(first), np.int64)
        smallest, slots = 2, 2
        while smallest <= SWEEP:
            rows = np.flatnonzero((count >= smallest) & (count <= slots))
            step = max(1, _CHUNK // slots)
            for begin in range(0, len(rows), step):
                part = rows[begin : begin + step]
                most = most_below(depth[part], max_depth)
                left[part] = _split(
                    records, first[part], count[part], most, slots, node[part], bounds
                )
            smallest, slots = slots + 1, 2 * slots
        write_inner(children, node, left, count)
        pairs = children.reshape(-1, 2)
        one = left == 1
        pairs[node[one], 0] = ~records[first[one], 6].astype(np.int32)
        one = count - left == 1
        pairs[node[one], 1] = ~records[(first + left)[one], 6].astype(np.int32)
        child_count = np.stack([left, count - left], axis=1).reshape(-1)
        child_first = np.stack([first, first + left], axis=1).reshape(-1)
        child_node = np.stack([node + 1, node + left], axis=1).reshape(-1)
        live = child_count > 1
        depth = np.repeat(depth + 1, 2)[live]
        first, count, node = child_first[live], child_count[live], child_node[live]


def _ramp(count: I64) -> I64:
    return np.asarray(np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count))


def _split(
    records: U32, first: I64, count: I64, most: I64, slots: int, node: I64, bounds: F32
) -> I64:
    """Cuts nodes of at most `slots` primitives, puts their lefts first, writes their boxes;
    returns the left counts."""
    offset = np.arange(slots)
    valid = offset < count[:, None]
    at = np.where(valid, first[:, None] + offset, first[:, None])  # [k, slots]
    mine = records[at]
    centre = centres(mine.reshape(-1, WORK_WORDS)).reshape(len(first), slots, 3)
    low = np.where(valid[..., None], mine[..., :3], _ALL)
    high = np.where(valid[..., None], mine[..., 3:6], np.uint32(0))
    whole_low, whole_high = low.min(axis=1), high.max(axis=1)
    bounds.reshape(-1, 6)[node] = np.concatenate([value_of(whole_low), value_of(whole_high)], 1)
    scale = np.repeat(area_scale(whole_low, whole_high)[:, None], slots - 1, axis=1)
    left = offset[1:]
    right = count[:, None] - left
    usable = (right > 0) & (np.maximum(left, right) <= most[:, None])
    every = np.arange(len(first))
    best = np.full(len(first), np.iinfo(np.uint64).max)
    order = np.empty((len(first), slots), np.int64)
    for axis in range(3):
        key = np.where(valid, centre[..., axis], np.float32(np.inf))
        rank = np.argsort(key, axis=1, kind="stable")
        ranked_low = np.take_along_axis(low, rank[..., None], axis=1)
        ranked_high = np.take_along_axis(high, rank[..., None], axis=1)
        left_low = np.minimum.accumulate(ranked_low, axis=1)[:, :-1]
        left_high = np.maximum.accumulate(ranked_high, axis=1)[:, :-1]
        right_low = np.minimum.accumulate(ranked_low[:, ::-1], axis=1)[:, -2::-1]
        right_high = np.maximum.accumulate(ranked_high[:, ::-1], axis=1)[:, -2::-1]
        with np.errstate(over="ignore", invalid="ignore"):  # padding
            cost = scaled_area(left_low, left_high, scale) * left.astype(np.float32)
            cost = cost + scaled_area(right_low, right_high, scale) * right.astype(np.float32)
        uneven = np.abs(right - left).astype(np.uint64)
        tie = uneven << np.uint64(16) | np.uint64(axis << 8) | rank[:, :-1].astype(np.uint64)
        value = np.ascontiguousarray(cost).view(np.uint32).astype(np.uint64) << np.uint64(32) | tie
        value = np.where(usable, value, np.iinfo(np.uint64).max)
        cheapest = value.min(axis=1)
        better = cheapest < best
        best[better] = cheapest[better]
        order[better] = rank[better]
    last = (best & np.uint64(0xFF)).astype(np.int64)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(offset, order.shape), axis=1)
    goes_left = valid & (place <= place[every, last][:, None])
    lefts = goes_left.sum(axis=1)
    # Both sides keep their order.
    stable = np.argsort(np.where(valid, ~goes_left, 2), axis=1, kind="stable")
    moved = np.take_along_axis(mine, stable[..., None], axis=1)
    records[at[valid]] = moved[valid]
    return np.asarray(lefts, np.int64)
