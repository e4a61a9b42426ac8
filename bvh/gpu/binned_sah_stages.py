"""Twins of the level-by-level stages of the binned SAH build: while a node holds more than SWEEP
primitives.

A level is five dispatches. `sah_bin`: every primitive into one of BINS bins an axis of its node,
the boxes of bins by integer minima and maxima. `sah_choose`: the cheapest boundary between bins,
of those whose two sides can still be brought down to SWEEP by halving on the levels that are left;
a node without one is cut in the middle of its order. `sah_count`, `sah_list`, `sah_move`: a stable
partition, and the list of the next level. An inner node's id is its rank in depth-first order,
which its place and its primitives' counts give, so that nothing has to be numbered.

Source: Wald 2007, "On fast construction of SAH-based bounding volume hierarchies".
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.binned_sah_cuts import (
    EMPTY_BIN,
    EMPTY_EXTENT,
    cheapest_cut,
    cut_costs,
    cut_sides,
    goes_left,
    grow_boxes,
    members,
    rank_in_node,
    slab_steps,
    tile_of,
)
from bvh.gpu.binned_sah_records import (
    BIN_WORDS,
    BINS,
    HALVED,
    NO_SLOT,
    NODE_BIN_WORDS,
    SWEEP,
    TILE,
    WORK_WORDS,
    area_scale,
    centres,
    kept_count,
    most_below,
    ordered,
    value_of,
)
from bvh.gpu.build_records import LARGEST
from bvh.tree import EMPTY

U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Records = NDArray[Any]
Mask = NDArray[np.bool_]


def sah_clear(parameters: Records, state: Records, nodes: Records, extents: U32, bins: U32) -> None:
    """Twin of sah_clear.wgsl: empty bins, the root in the first level's list if it is large."""
    kept = kept_count(state)
    words = max(kept // (SWEEP + 1), 1) * NODE_BIN_WORDS
    bins[:words] = np.tile(EMPTY_BIN, words // BIN_WORDS)
    extents[:6] = EMPTY_EXTENT
    large = kept > SWEEP
    nodes[0] = (int(large), -(-kept // TILE) if large else 0, 0, 0)
    nodes[1] = (0, kept, 0, 0)


def sah_start(
    parameters: Records,
    state: Records,
    boxes: F32,
    work: U32,
    extents: U32,
    tiles: Records,
    heads: Records,
    children: I32,
    bounds: F32,
) -> None:
    """Twin of sah_start.wgsl: work records, the root's centroid extents, no heads but a small
    root's; the whole tree where there are fewer than two primitives."""
    kept = kept_count(state)
    every = np.ascontiguousarray(boxes[: 6 * kept], np.float32).reshape(kept, 6)
    records = work[: WORK_WORDS * kept].reshape(kept, WORK_WORDS)
    records[:, :6] = ordered(every)
    records[:, 6] = np.arange(kept)
    records[:, 7] = 0
    heads[:kept] = 0
    if 2 <= kept <= SWEEP:
        heads[0] = (kept, 1, 0)
    tiles[: -(-kept // TILE)] = 0
    if kept:
        centre = ordered(centres(records))
        np.minimum(extents[:3], centre.min(axis=0), out=extents[:3])
        np.maximum(extents[3:6], centre.max(axis=0), out=extents[3:6])
    if kept < 2:
        children[:2] = (~0 if kept else EMPTY, EMPTY)
        bounds[:6] = every[0] if kept else [LARGEST] * 3 + [-LARGEST] * 3


def sah_bin(
    parameters: Records, nodes: Records, tiles: Records, extents: U32, work: U32, bins: U32
) -> None:
    """Twin of sah_bin.wgsl: fills the listed nodes' bins and notes each primitive's three."""
    listed, slot, place = members(nodes)
    records = work.reshape(-1, WORK_WORDS)
    mine = records[place]
    centre = centres(mine)
    extent = value_of(extents[: 6 * len(listed)].reshape(-1, 2, 3))
    low = extent[:, 0]
    _, normalise, factor = slab_steps(low, extent[:, 1])
    table = bins.reshape(-1, BIN_WORDS)
    packed = np.zeros(len(place), np.uint32)
    for axis in range(3):
        step = (centre[:, axis] - low[slot, axis]) * normalise[slot, axis] * factor[slot, axis]
        bin_of = np.minimum(step.astype(np.uint32), BINS - 1)
        packed |= bin_of << np.uint32(5 * axis)
        row = (3 * slot + axis) * BINS + bin_of
        grow_boxes(table, row, mine[:, :3], mine[:, 3:6])
        table[:, 6] += np.bincount(row, minlength=len(table)).astype(np.uint32)
    records[place, 7] = packed


def sah_choose(
    parameters: Records,
    nodes: Records,
    bins: U32,
    next_extents: U32,
    splits: Records,
    children: I32,
    bounds: F32,
) -> None:
    """Twin of sah_choose.wgsl: a cut for every listed node, its box and its inner children; the
    bins are emptied for the next level."""
    level, levels = int(parameters["level"][0]), int(parameters["levels"][0])
    listed = nodes[1 : 1 + int(nodes["first"][0])]
    used = len(listed)
    table = bins[: used * NODE_BIN_WORDS].reshape(used, 3, BINS, BIN_WORDS)
    slots = min(2 * used, len(next_extents) // 6)
    next_extents[: 6 * slots] = np.tile(EMPTY_EXTENT, slots)
    if not used:
        return
    sides = cut_sides(table[..., :3], table[..., 3:6])
    low, high = sides[0][:, 0, -1], sides[1][:, 0, -1]
    total = listed["count"].astype(np.int64)
    left = np.cumsum(table[..., 6], axis=2, dtype=np.int64)
    right = total[:, None, None] - left
    larger = np.maximum(left, right)
    most = min(
        int(most_below(level + 1, int(parameters["max_depth"][0]))),
        SWEEP << min(levels - 1 - level, 20),
    )
    cost = cut_costs(sides, left, right, area_scale(low, high))
    usable = (larger < total[:, None, None]) & (larger <= most)
    best, found = cheapest_cut(cost, usable, larger - np.minimum(left, right))
    out = splits[:used]
    out["axis"] = np.where(found, best // BINS, HALVED)
    out["last_bin"] = np.where(found, best % BINS, 0)
    lefts = np.where(found, left.reshape(used, -1)[np.arange(used), best], total // 2)
    out["left_count"] = lefts
    out["left_slot"] = out["right_slot"] = NO_SLOT
    node = listed["id"].astype(np.int64)
    write_inner(children, node, lefts, total)
    box = np.concatenate([value_of(low), value_of(high)], axis=1)
    bounds.reshape(-1, 6)[node] = box
    table[:] = EMPTY_BIN


def write_inner(children: I32, node: I64, left: I64, total: I64) -> None:
    """Those children of nodes `node` that are inner nodes: in depth-first order the left one
    comes next, and the right one after the `left - 1` nodes of its subtree."""
    pairs = children.reshape(-1, 2)
    rows = left > 1
    pairs[node[rows], 0] = node[rows] + 1
    rows = total - left > 1
    pairs[node[rows], 1] = (node + left)[rows]


def _goes_left(splits: Records, slot: I64, packed: U32, offset: I64) -> Mask:
    cut = splits[slot]
    return goes_left(cut["axis"], cut["last_bin"], cut["left_count"], packed, offset)


def sah_count(nodes: Records, splits: Records, work: U32, tiles: Records) -> None:
    """Twin of sah_count.wgsl: each tile's primitives that go left."""
    listed, slot, place = members(nodes)
    packed = work.reshape(-1, WORK_WORDS)[place, 7]
    left = _goes_left(splits, slot, packed, place - listed["first"][slot])
    tile_count = int(nodes["count"][0])
    tile = tile_of(listed, slot, place)
    tiles["lefts"][:tile_count] = np.bincount(tile[left], minlength=tile_count)


def sah_list(
    parameters: Records,
    nodes: Records,
    splits: Records,
    tiles: Records,
    next_nodes: Records,
    next_tiles: Records,
    heads: Records,
) -> None:
    """Twin of sah_list.wgsl: scans the tiles' lefts, lists the large children and their tiles,
    and marks where the small ones begin."""
    used, tile_count = int(nodes["first"][0]), int(nodes["count"][0])
    listed, cut = nodes[1 : 1 + used], splits[:used]
    lefts = tiles["lefts"][:tile_count].copy()
    tiles["lefts"][:tile_count] = np.cumsum(lefts) - lefts
    left = cut["left_count"].astype(np.int64)
    total = listed["count"].astype(np.int64)
    count = np.stack([left, total - left], axis=1)
    first = listed["first"][:, None] + np.stack([np.zeros_like(left), left], axis=1)
    node = listed["id"][:, None] + np.stack([np.ones_like(left), left], axis=1)
    large = count > SWEEP
    child_tiles = np.where(large, -(-count // TILE), 0).reshape(-1)
    first_tile = (np.cumsum(child_tiles) - child_tiles).reshape(-1, 2)
    slot: I64 = (np.cumsum(large) - large.reshape(-1)).reshape(-1, 2)
    cut["left_slot"] = np.where(large[:, 0], slot[:, 0], NO_SLOT)
    cut["right_slot"] = np.where(large[:, 1], slot[:, 1], NO_SLOT)
    listed_count = int(large.sum())
    next_nodes[0] = (listed_count, int(child_tiles.sum()), 0, 0)
    out = next_nodes[1 : 1 + listed_count]
    out["first"], out["count"] = first[large], count[large]
    out["id"], out["first_tile"] = node[large], first_tile[large]
    next_tiles["node"][: int(child_tiles.sum())] = np.repeat(
        np.arange(listed_count), child_tiles[large.reshape(-1)]
    )
    small = (count > 1) & ~large
    at = first[small].astype(np.int64)
    heads["count"][at] = count[small]
    heads["depth"][at] = int(parameters["level"][0]) + 2
    heads["id"][at] = node[small]


def sah_move(
    parameters: Records,
    nodes: Records,
    splits: Records,
    tiles: Records,
    work: U32,
    next_work: U32,
    next_extents: U32,
    children: I32,
) -> None:
    """Twin of sah_move.wgsl: the stable partition, the large children's centroid extents, and
    the leaves of this level's nodes."""
    listed, slot, place = members(nodes)
    mine = work.reshape(-1, WORK_WORDS)[place]
    start = listed["first"][slot].astype(np.int64)
    left = _goes_left(splits, slot, mine[:, 7], place - start)
    lefts = splits["left_count"][slot].astype(np.int64)
    count = listed["count"][slot].astype(np.int64)
    before = rank_in_node(listed, slot, left)
    target = start + np.where(left, before, lefts + (place - start) - before)
    next_work.reshape(-1, WORK_WORDS)[target] = mine
    single = np.where(left, lefts, count - lefts) == 1
    side = np.where(left, 0, 1)
    node = listed["id"][slot].astype(np.int64)
    children.reshape(-1, 2)[node[single], side[single]] = ~mine[single, 6].astype(np.int32)
    child = np.where(left, splits["left_slot"][slot], splits["right_slot"][slot])
    listed_child = child != NO_SLOT
    centre = ordered(centres(mine[listed_child]))
    grow_boxes(next_extents.reshape(-1, 6), child[listed_child], centre, centre)
