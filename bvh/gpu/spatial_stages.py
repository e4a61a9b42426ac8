"""Twins of the stages that split references, the upper levels of a build with spatial splits, for
the references that it makes. Those that choose the cuts are in `bvh.gpu.spatial_cuts`.

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

from bvh.gpu.binned_sah_cuts import (
    EMPTY_BIN,
    EMPTY_EXTENT,
    goes_left,
    grow_boxes,
    members,
    rank_in_node,
    tile_of,
)
from bvh.gpu.binned_sah_records import (
    BIN_WORDS,
    NO_SLOT,
    TILE,
    WORK_WORDS,
    centres,
    kept_count,
    ordered,
    value_of,
)
from bvh.gpu.spatial_clip import clip_block, is_box
from bvh.gpu.spatial_cuts import EMPTY_SPACE
from bvh.gpu.spatial_records import (
    CORNER_WORDS,
    CORNERS,
    OBJECT_LEFT,
    SPACE_BIN_WORDS,
    SPACE_LEFT,
    SPACE_RIGHT,
    SPLIT_ABOVE,
)

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Records = NDArray[Any]
Mask = NDArray[np.bool_]


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
    bins[:] = np.tile(EMPTY_BIN, len(bins) // BIN_WORDS)
    space[:] = np.tile(EMPTY_SPACE, len(space) // SPACE_BIN_WORDS)
    extents[:6] = EMPTY_EXTENT
    large = kept > SPLIT_ABOVE
    share = int(parameters["budget_share"][0])
    split_state[0] = 0
    split_state["budget"][0] = (kept >> 8) * share + ((kept & 255) * share >> 8)
    split_state["finished"][0] = 0 if large else kept
    split_state["open"][0] = kept if large else 0
    nodes[0] = (int(large), -(-kept // TILE) if large else 0, 0, 0)
    nodes[1] = (0, kept, 0, 0)


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
    cut = cuts[slot]
    object_left = goes_left(
        cut["object_axis"],
        cut["last_bin"],
        cut["object_left"],
        mine[:, 7],
        place - listed["first"][slot],
    )
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
    for side, part, name in ((left, left_part, "left"), (right, right_part, "right")):
        rank = rank_in_node(listed, slot, side)
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
    grow_boxes(extents.reshape(-1, 6), slot, centre, centre)


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
