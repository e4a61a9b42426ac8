"""Twins of the stages that choose how nodes of references are cut (see `bvh.gpu.spatial_stages`):
between bins of centroids, or by a plane between slabs of the node's box."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.binned_sah_cuts import (
    ALL,
    EMPTY_BIN,
    EMPTY_EXTENT,
    cheapest_cut,
    cut_costs,
    cut_sides,
    grow_boxes,
    members,
    slab_steps,
)
from bvh.gpu.binned_sah_records import (
    BIN_WORDS,
    BINS,
    HALVED,
    NO_SLOT,
    NODE_BIN_WORDS,
    WORK_WORDS,
    area_scale,
    ordered,
    scaled_area,
    value_of,
)
from bvh.gpu.spatial_records import (
    LARGEST_COORDINATE,
    LEAST_OVERLAP,
    SPACE_BIN_WORDS,
    SPACE_WORDS,
)

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
Records = NDArray[Any]

EMPTY_SPACE = np.array([ALL, ALL, ALL, 0, 0, 0, 0, 0], np.uint32)


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
    extents[: 6 * slots] = np.tile(EMPTY_EXTENT, slots)
    if not used:
        return
    sides = cut_sides(table[..., :3], table[..., 3:6])
    low, high = sides[0][:, 0, -1], sides[1][:, 0, -1]
    if int(parameters["level"][0]) == 0:
        split_state["root_low"][0], split_state["root_high"][0] = low[0], high[0]
    total = listed["count"].astype(np.int64)
    left = np.cumsum(table[..., 6], axis=2, dtype=np.int64)
    right = total[:, None, None] - left
    larger = np.maximum(left, right)
    scale = area_scale(low, high)
    cost = cut_costs(sides, left, right, scale)
    usable = larger < total[:, None, None]
    best, found = cheapest_cut(cost, usable, larger - np.minimum(left, right))
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
    table[:] = EMPTY_BIN


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
        is_open, normalise, factor = slab_steps(side_low, side_high)
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
        grow_boxes(table, row[owner] + index, part[:, :3], part[:, 3:6])


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
    sides = cut_sides(table[..., :3], table[..., 3:6])
    cost = cut_costs(sides, left, right, area_scale(out["low"], out["high"]))
    usable = (left > 0) & (right > 0) & (left < total) & (right < total)
    usable &= (out["tried"] == 1)[:, None, None]
    uneven = np.abs(left - right)
    best, found = cheapest_cut(cost, usable, uneven)
    every = np.arange(used)
    axis = best // BINS
    low = value_of(out["low"][every, axis])
    high = value_of(out["high"][every, axis])
    cheaper = found & (cost.reshape(used, -1)[every, best] < out["object_cost"])
    out["axis"] = np.where(cheaper, axis, 0)
    out["plane"] = np.where(cheaper, _plane(low, high, best % BINS + 1), np.float32(0))
    out["cheaper"] = cheaper
    table[out["tried"] == 1] = EMPTY_SPACE
