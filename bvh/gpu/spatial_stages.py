"""Twins of the stages that split references: the upper levels of a build with spatial splits, for
the references that it makes.

A level is eight dispatches over the nodes of more than SPLIT_ABOVE references. `spatial_extents`,
`sah_bin` and `spatial_object`: the cheapest cut between bins of centroids. Where the boxes of its
two sides overlap, `spatial_bin` and `spatial_plane`: the cheapest plane between BINS slabs of the
node's box, each holding the parts of boxes in it. `spatial_sides`: what is left and right of
either, and which references a plane really cuts. `spatial_list`: a node takes its plane if that is
cheaper and the budget has room for the references it adds; nodes that have become small are
finished. `spatial_move`: the stable partition, where what a plane cuts goes to both sides with the
boxes of its two parts.

The tree over the references is built afresh by any builder: planes separate references, so that a
cut between centroids finds them again.

Source: Stich, Friedrich, Dietrich 2009, "Spatial splits in bounding volume hierarchies"; splitting
ahead of the build as Ganestam and Doggett 2016, "SAH guided spatial split partitioning".
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.binned_sah_records import (
    BIN_WORDS,
    BINS,
    HALVED,
    NO_SLOT,
    NODE_BIN_WORDS,
    TILE,
    WORK_WORDS,
    area_scale,
    centres,
    kept_count,
    ordered,
    scaled_area,
    value_of,
)
from bvh.gpu.binned_sah_stages import members, tile_of
from bvh.gpu.spatial_clip import clip_block, is_box
from bvh.gpu.spatial_records import (
    CORNER_WORDS,
    CORNERS,
    LARGEST_COORDINATE,
    LEAST_OVERLAP,
    OBJECT_LEFT,
    SPACE_BIN_WORDS,
    SPACE_LEFT,
    SPACE_RIGHT,
    SPACE_WORDS,
    SPLIT_ABOVE,
)

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Records = NDArray[Any]
Mask = NDArray[np.bool_]

_ALL = np.uint32(0xFFFFFFFF)
_EMPTY_EXTENT = np.array([_ALL, _ALL, _ALL, 0, 0, 0], np.uint32)
_EMPTY_BIN = np.array([_ALL, _ALL, _ALL, 0, 0, 0, 0], np.uint32)
_EMPTY_SPACE = np.array([_ALL, _ALL, _ALL, 0, 0, 0, 0, 0], np.uint32)


def spatial_start(
    parameters: Records, state: Records, boxes: F32, tiles: Records, work: U32, done: U32
) -> None:
    """Twin of spatial_start.wgsl: one reference a block, all in the root; a root that is small is
    finished at once, as no level would move its references on."""
    kept = kept_count(state)
    target = work if kept > SPLIT_ABOVE else done
    records = target[: WORK_WORDS * kept].reshape(kept, WORK_WORDS)
    records[:, :6] = ordered(np.ascontiguousarray(boxes[: 6 * kept], np.float32).reshape(kept, 6))
    records[:, 6] = np.arange(kept)
    records[:, 7] = 0
    tiles["node"][: -(-kept // TILE)] = 0


def spatial_clear(
    parameters: Records,
    state: Records,
    split_state: Records,
    nodes: Records,
    extents: U32,
    bins: U32,
    space: U32,
) -> None:
    """Twin of spatial_clear.wgsl: empty bins, the root's record, the whole budget."""
    kept = kept_count(state)
    bins[:] = np.tile(_EMPTY_BIN, len(bins) // BIN_WORDS)
    space[:] = np.tile(_EMPTY_SPACE, len(space) // SPACE_BIN_WORDS)
    extents[:6] = _EMPTY_EXTENT
    large = kept > SPLIT_ABOVE
    share = int(parameters["budget_share"][0])
    split_state[0] = 0
    split_state["budget"][0] = (kept >> 8) * share + ((kept & 255) * share >> 8)
    split_state["finished"][0] = 0 if large else kept
    split_state["open"][0] = kept if large else 0
    nodes[0] = (int(large), -(-kept // TILE) if large else 0, 0, 0)
    nodes[1] = (0, kept, 0, 0)


def _sides(low: U32, high: U32) -> tuple[U32, U32, U32, U32]:
    """Unions of bins up to and after each, of `[n, 3, BINS, 3]`."""
    left_low = np.minimum.accumulate(low, axis=2)
    left_high = np.maximum.accumulate(high, axis=2)
    right_low, right_high = np.full_like(low, _ALL), np.zeros_like(high)
    back = np.s_[:, :, :0:-1]
    right_low[:, :, :-1] = np.minimum.accumulate(low[back], axis=2)[:, :, ::-1]
    right_high[:, :, :-1] = np.maximum.accumulate(high[back], axis=2)[:, :, ::-1]
    return left_low, left_high, right_low, right_high


def _costs(sides: tuple[U32, U32, U32, U32], left: I64, right: I64, scale: F32) -> F32:
    wide = np.repeat(scale, 3 * BINS).reshape(-1, 3, BINS)
    with np.errstate(over="ignore", invalid="ignore"):  # empty boxes, whose cost is not looked at
        cost = scaled_area(sides[0], sides[1], wide) * left.astype(np.float32)
        return np.asarray(
            cost + scaled_area(sides[2], sides[3], wide) * right.astype(np.float32), np.float32
        )


def _cheapest(cost: F32, usable: Mask, uneven: I64) -> tuple[I64, Mask]:
    """(axis * BINS + bin, whether there is one); the evenest of equals, then the first."""
    key = np.where(usable, np.ascontiguousarray(cost).view(np.uint32), _ALL).astype(np.uint64)
    key = (key << np.uint64(32) | uneven.astype(np.uint64)).reshape(len(cost), -1)
    best = np.argmin(key, axis=1)
    return best, usable.reshape(len(cost), -1)[np.arange(len(cost)), best]


def spatial_object(
    parameters: Records,
    nodes: Records,
    bins: U32,
    extents: U32,
    split_state: Records,
    cuts: Records,
) -> None:
    """Twin of spatial_object.wgsl: the cheapest cut between centroids, and whether its sides
    overlap enough for a spatial split to be tried."""
    listed = nodes[1 : 1 + int(nodes["first"][0])]
    used = len(listed)
    table = bins[: used * NODE_BIN_WORDS].reshape(used, 3, BINS, BIN_WORDS)
    slots = min(2 * used, len(extents) // 6)
    extents[: 6 * slots] = np.tile(_EMPTY_EXTENT, slots)
    if not used:
        return
    sides = _sides(table[..., :3], table[..., 3:6])
    low, high = sides[0][:, 0, -1], sides[1][:, 0, -1]
    if int(parameters["level"][0]) == 0:
        split_state["root_low"][0], split_state["root_high"][0] = low[0], high[0]
    total = listed["count"].astype(np.int64)
    left = np.cumsum(table[..., 6], axis=2, dtype=np.int64)
    right = total[:, None, None] - left
    larger = np.maximum(left, right)
    scale = area_scale(low, high)
    cost = _costs(sides, left, right, scale)
    usable = larger < total[:, None, None]
    best, found = _cheapest(cost, usable, larger - np.minimum(left, right))
    every = np.arange(used)
    pick = [side.reshape(used, -1, 3)[every, best] for side in sides]
    both_low, both_high = np.maximum(pick[0], pick[2]), np.minimum(pick[1], pick[3])
    meets = found & (both_low <= both_high).all(axis=1)
    root_low, root_high = split_state["root_low"][0], split_state["root_high"][0]
    root_scale = area_scale(root_low, root_high)
    with np.errstate(over="ignore", invalid="ignore"):
        overlap = scaled_area(both_low, both_high, np.broadcast_to(root_scale, used))
    least = scaled_area(root_low, root_high, root_scale) * np.float32(LEAST_OVERLAP)
    bound = np.float32(LARGEST_COORDINATE)
    small = (value_of(low) > -bound).all(axis=1) & (value_of(high) < bound).all(axis=1)
    out = cuts[:used]
    out["object_axis"] = np.where(found, best // BINS, HALVED)
    out["last_bin"] = np.where(found, best % BINS, 0)
    out["object_left"] = np.where(found, left.reshape(used, -1)[every, best], total // 2)
    out["object_cost"] = np.where(found, cost.reshape(used, -1)[every, best], np.float32(0))
    out["tried"] = meets & small & (overlap > least)
    out["low"], out["high"] = low, high
    out["axis"] = out["cheaper"] = out["spatial"] = 0
    out["plane"] = 0
    out["left_slot"] = out["right_slot"] = NO_SLOT
    out["left_first"] = out["right_first"] = 0
    table[:] = _EMPTY_BIN


def _slab(low: F32, high: F32) -> tuple[Mask, F32, F32]:
    """(whether an axis is open, power of two and factor that make bins of a place on it)."""
    pattern = np.ascontiguousarray(high - low).view(np.uint32)
    exponent = pattern >> 23
    is_open = exponent > 0
    normalise = ((np.uint32(254) - exponent) << np.uint32(23)).view(np.float32)
    integer = 0x1000000 // ((pattern >> 12 & 0x7FF | 0x800) + 1)
    factor = integer.astype(np.float32) * np.float32(BINS / 8192)
    return is_open, np.where(is_open, normalise, np.float32(0)), factor


def _plane(low: F32, high: F32, index: Any) -> F32:
    """Where slab `index` of a node's side begins."""
    share = np.asarray(index, np.float32) * np.float32(1 / BINS)
    return np.asarray(low + (high - low) * share, np.float32)


def spatial_bin(
    parameters: Records, nodes: Records, tiles: Records, cuts: Records, work: U32, space: U32
) -> None:
    """Twin of spatial_bin.wgsl: the parts of references' boxes in each slab of their nodes, for
    the nodes that try a spatial split."""
    listed, slot, place = members(nodes)
    tried = cuts["tried"][slot] == 1
    slot, place = slot[tried], place[tried]
    mine = work.reshape(-1, WORK_WORDS)[place]
    table = space.reshape(-1, SPACE_BIN_WORDS)
    for axis in range(3):
        side_low = value_of(np.ascontiguousarray(cuts["low"][:, axis]))[slot]
        side_high = value_of(np.ascontiguousarray(cuts["high"][:, axis]))[slot]
        is_open, normalise, factor = _slab(side_low, side_high)
        low, high = value_of(mine[:, axis].copy()), value_of(mine[:, 3 + axis].copy())
        first = np.minimum(((low - side_low) * normalise * factor).astype(np.uint32), BINS - 1)
        last = np.minimum(((high - side_low) * normalise * factor).astype(np.uint32), BINS - 1)
        first, last = first.astype(np.int64), last.astype(np.int64)
        row = (3 * slot + axis) * BINS
        rows = np.flatnonzero(is_open)
        np.add.at(table[:, 6], (row + first)[rows], 1)
        np.add.at(table[:, 7], (row + last)[rows], 1)
        span = np.where(is_open, last - first + 1, 0)
        owner = np.repeat(np.arange(len(span)), span)
        index = first[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(span) - span, span)
        begin = _plane(side_low[owner], side_high[owner], index)
        end = _plane(side_low[owner], side_high[owner], index + 1)
        part = mine[owner, :6]
        inner = index > first[owner]
        part[inner, axis] = np.maximum(part[:, axis], ordered(begin))[inner]
        inner = index < last[owner]
        part[inner, 3 + axis] = np.minimum(part[:, 3 + axis], ordered(end))[inner]
        for k in range(3):
            np.minimum.at(table[:, k], row[owner] + index, part[:, k])
            np.maximum.at(table[:, 3 + k], row[owner] + index, part[:, 3 + k])


def spatial_plane(parameters: Records, nodes: Records, space: U32, cuts: Records) -> None:
    """Twin of spatial_plane.wgsl: the cheapest plane of every node that tries one."""
    listed = nodes[1 : 1 + int(nodes["first"][0])]
    used = len(listed)
    if not used:
        return
    out = cuts[:used]
    table = space[: used * SPACE_WORDS].reshape(used, 3, BINS, SPACE_BIN_WORDS)
    total = listed["count"].astype(np.int64)[:, None, None]
    left = np.cumsum(table[..., 6], axis=2, dtype=np.int64)
    right = table[..., 7].sum(axis=2, dtype=np.int64)[:, :, None] - np.cumsum(
        table[..., 7], axis=2, dtype=np.int64
    )
    sides = _sides(table[..., :3], table[..., 3:6])
    cost = _costs(sides, left, right, area_scale(out["low"], out["high"]))
    usable = (left > 0) & (right > 0) & (left < total) & (right < total)
    usable &= (out["tried"] == 1)[:, None, None]
    uneven = np.abs(left - right)
    best, found = _cheapest(cost, usable, uneven)
    every = np.arange(used)
    axis = best // BINS
    low = value_of(out["low"][every, axis])
    high = value_of(out["high"][every, axis])
    cheaper = found & (cost.reshape(used, -1)[every, best] < out["object_cost"])
    out["axis"] = np.where(cheaper, axis, 0)
    out["plane"] = np.where(cheaper, _plane(low, high, best % BINS + 1), np.float32(0))
    out["cheaper"] = cheaper
    table[out["tried"] == 1] = _EMPTY_SPACE


def _cut_references(corners: F32, cuts: Records, slot: I64, mine: U32) -> tuple[U32, U32, U32, U32]:
    """`clip_block` of work records by their nodes' planes."""
    blocks = corners.reshape(-1, CORNER_WORDS)[mine[:, 6], : 3 * CORNERS].reshape(-1, CORNERS, 3)
    axis = cuts["axis"][slot].astype(np.int64)
    return clip_block(blocks, mine[:, :3], mine[:, 3:6], axis, cuts["plane"][slot])


def spatial_sides(
    parameters: Records,
    nodes: Records,
    tiles: Records,
    cuts: Records,
    corners: F32,
    work: U32,
    sums: Records,
) -> None:
    """Twin of spatial_sides.wgsl: which sides a reference is on, and how many a tile has there."""
    listed, slot, place = members(nodes)
    records = work.reshape(-1, WORK_WORDS)
    mine = records[place]
    axis = cuts["object_axis"][slot]
    halved = axis == HALVED
    shift = np.where(halved, 0, 5 * axis).astype(np.uint32)
    by_bin = (mine[:, 7] >> shift & 31) <= cuts["last_bin"][slot]
    offset = place - listed["first"][slot]
    object_left = np.where(halved, offset < cuts["object_left"][slot], by_bin)
    cheaper = cuts["cheaper"][slot] == 1
    every = np.arange(len(slot))
    along = cuts["axis"][slot].astype(np.int64)
    plane = cuts["plane"][slot]
    low, high = value_of(mine[every, along]), value_of(mine[every, 3 + along])
    left = cheaper & (high <= plane)
    right = cheaper & ~left & (low >= plane)
    rows = np.flatnonzero(cheaper & ~left & ~right)
    parts = _cut_references(corners, cuts, slot[rows], mine[rows])
    has_left, has_right = is_box(parts[0], parts[1]), is_box(parts[2], parts[3])
    left[rows] = has_left | ~has_right
    right[rows] = has_right
    word = mine[:, 7] & np.uint32(0x7FFF)
    word |= np.where(object_left, OBJECT_LEFT, 0).astype(np.uint32)
    word |= np.where(left, SPACE_LEFT, 0).astype(np.uint32)
    word |= np.where(right, SPACE_RIGHT, 0).astype(np.uint32)
    records[place, 7] = word
    tile_count = int(nodes["count"][0])
    tile = tile_of(listed, slot, place)
    for name, side in (("object_left", object_left), ("space_left", left), ("space_right", right)):
        sums[name][:tile_count] = np.bincount(tile[side], minlength=tile_count)


def spatial_list(
    nodes: Records,
    cuts: Records,
    sums: Records,
    split_state: Records,
    next_nodes: Records,
    next_tiles: Records,
) -> None:
    """Twin of spatial_list.wgsl: who takes a plane, where the children go, the next level."""
    used, tile_count = int(nodes["first"][0]), int(nodes["count"][0])
    listed, out = nodes[1 : 1 + used], cuts[:used]
    if not used:
        next_nodes[0] = 0
        return
    totals = {}
    for name in ("object_left", "space_left", "space_right"):
        values = sums[name][:tile_count].astype(np.int64)
        before = np.concatenate([[0], np.cumsum(values)])
        sums[name][:tile_count] = before[:-1]
        ends = np.append(listed["first_tile"][1:], tile_count).astype(np.int64)
        totals[name] = before[ends] - before[listed["first_tile"].astype(np.int64)]
    count = listed["count"].astype(np.int64)
    left, right = totals["space_left"], totals["space_right"]
    wants = (out["cheaper"] == 1) & (left > 0) & (right > 0) & (left < count) & (right < count)
    added = np.where(wants, left + right - count, 0)
    before = np.cumsum(added) - added
    spatial = wants & (before + added <= int(split_state["budget"][0]))
    out["spatial"] = spatial
    left = np.where(spatial, left, out["object_left"])
    right = np.where(spatial, right, count - left)
    child = np.stack([left, right], axis=1)
    large = child > SPLIT_ABOVE
    slot: I64 = (np.cumsum(large) - large.reshape(-1)).reshape(-1, 2)
    out["left_slot"] = np.where(large[:, 0], slot[:, 0], NO_SLOT)
    out["right_slot"] = np.where(large[:, 1], slot[:, 1], NO_SLOT)
    open_size = np.where(large, child, 0).reshape(-1)
    open_first = np.cumsum(open_size) - open_size
    done_size = np.where(large, 0, child).reshape(-1)
    done_first = int(split_state["finished"][0]) + np.cumsum(done_size) - done_size
    first = np.where(large.reshape(-1), open_first, done_first).reshape(-1, 2)
    out["left_first"], out["right_first"] = first[:, 0], first[:, 1]
    tiles_of = np.where(large, -(-child // TILE), 0).reshape(-1)
    first_tile = (np.cumsum(tiles_of) - tiles_of).reshape(-1, 2)
    listed_count = int(large.sum())
    next_nodes[0] = (listed_count, int(tiles_of.sum()), 0, 0)
    fresh = next_nodes[1 : 1 + listed_count]
    fresh["first"], fresh["count"], fresh["id"] = first[large], child[large], 0
    fresh["first_tile"] = first_tile[large]
    next_tiles["node"][: int(tiles_of.sum())] = np.repeat(
        np.arange(listed_count), tiles_of[large.reshape(-1)]
    )
    split_state["budget"][0] -= np.where(spatial, added, 0).sum()
    split_state["finished"][0] += done_size.sum()
    split_state["open"][0] = open_size.sum()


def spatial_move(
    parameters: Records,
    nodes: Records,
    tiles: Records,
    cuts: Records,
    sums: Records,
    corners: F32,
    work: U32,
    next_work: U32,
    done: U32,
) -> None:
    """Twin of spatial_move.wgsl: references to their children, parts of what a plane cuts."""
    listed, slot, place = members(nodes)
    if not len(slot):
        return
    mine = work.reshape(-1, WORK_WORDS)[place].copy()
    word = mine[:, 7].copy()
    mine[:, 7] = 0
    spatial = cuts["spatial"][slot] == 1
    object_left = word & OBJECT_LEFT != 0
    left = np.where(spatial, word & SPACE_LEFT != 0, object_left)
    right = np.where(spatial, word & SPACE_RIGHT != 0, ~object_left)
    both = np.flatnonzero(left & right)
    parts = _cut_references(corners, cuts, slot[both], mine[both])
    left_part, right_part = mine.copy(), mine
    left_part[both, :3], left_part[both, 3:6] = parts[0], parts[1]
    right_part[both, :3], right_part[both, 3:6] = parts[2], parts[3]
    begin = np.cumsum(listed["count"], dtype=np.int64) - listed["count"]
    for side, part, name in ((left, left_part, "left"), (right, right_part, "right")):
        before = np.cumsum(side) - side
        rank = before - before[begin.astype(np.int64)][slot]
        at = cuts[f"{name}_first"][slot].astype(np.int64) + rank
        is_open = cuts[f"{name}_slot"][slot] != NO_SLOT
        for rows, target in ((side & is_open, next_work), (side & ~is_open, done)):
            target.reshape(-1, WORK_WORDS)[at[rows]] = part[rows]


def spatial_extents(
    parameters: Records, nodes: Records, tiles: Records, work: U32, extents: U32
) -> None:
    """Twin of spatial_extents.wgsl: the box of each listed node's centroids."""
    listed, slot, place = members(nodes)
    centre = ordered(centres(work.reshape(-1, WORK_WORDS)[place]))
    table = extents.reshape(-1, 6)
    for axis in range(3):
        np.minimum.at(table[:, axis], slot, centre[:, axis])
        np.maximum.at(table[:, 3 + axis], slot, centre[:, axis])


def spatial_finish(
    parameters: Records,
    state: Records,
    split_state: Records,
    blocks: U32,
    work: U32,
    done: U32,
    split_boxes: F32,
    split_blocks: U32,
    new_state: Records,
) -> None:
    """Twin of spatial_finish.wgsl: boxes and blocks of all references, the finished first, and a
    build state that counts them."""
    finished, left = int(split_state["finished"][0]), int(split_state["open"][0])
    total = finished + left
    every = np.concatenate([done[: WORK_WORDS * finished], work[: WORK_WORDS * left]])
    every = every.reshape(total, WORK_WORDS)
    split_boxes[: 6 * total] = value_of(every[:, :6]).reshape(-1)
    split_blocks[: 2 * total].reshape(total, 2)[:] = blocks.reshape(-1, 2)[every[:, 6]]
    new_state[:] = state
    np.ascontiguousarray(new_state).view(np.uint32)[0] = total
