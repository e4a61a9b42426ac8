"""Twins of pairing within a tile and of the blocks that come of it (see `bvh.gpu.pairing`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import REMOVED_DEGENERATE, REMOVED_NONFINITE
from bvh.gpu.pair_edges import (
    TRIANGLE_MASK,
    choose,
    edge_keys,
    mark_starts,
    rank_candidates,
    settle,
)
from bvh.gpu.pair_records import NEAR_TILE, NONE, REMOVED

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

ROUNDS = 4  # of choices, as in pair_near.wgsl


def pair_near(
    parameters: NDArray[Any],
    triangles: U32,
    triangle_ids: U32,
    triangle_boxes: F32,
    mates: U32,
    starts: U32,
) -> None:
    """Twin of pair_near.wgsl."""
    count = int(parameters["count"][0])
    boxes = triangle_boxes[: 6 * count].reshape(count, 2, 3)
    usable = boxes[:, 0, 0] <= boxes[:, 1, 0]
    mates[:count] = np.where(usable, np.uint32(NONE), np.uint32(REMOVED))
    if parameters["leaf"][0] > 1:
        corners = triangles[: 9 * count].reshape(count, 3, 3)
        key, direction = edge_keys(corners)
        half_edge = np.flatnonzero(np.repeat(usable, 3))
        tile = (half_edge // (3 * NEAR_TILE)).astype(np.uint64) << np.uint64(33)
        slot = tile | key[half_edge].astype(np.uint64) << np.uint64(1) | direction[half_edge]
        slots, first = np.unique(slot, return_index=True)
        # Both directions of one edge stand side by side.
        both = np.flatnonzero(slots[1:] == slots[:-1] + np.uint64(1))
        both = both[slots[both] % 2 == 0]
        lowest = half_edge[first]
        ids = triangle_ids[: 2 * count].reshape(count, 2)
        partner, rank = rank_candidates(lowest[both], lowest[both + 1], corners, ids, boxes)
        for _ in range(ROUNDS):
            settle(*choose(partner, rank, mates[:count]), mates[:count])
    starts[:count] = mark_starts(mates[:count])


def make_blocks(
    parameters: NDArray[Any],
    triangle_boxes: F32,
    mates: U32,
    starts: U32,
    block_total: U32,
    blocks: U32,
    boxes: F32,
    state: U32,
) -> None:
    """Twin of make_blocks.wgsl: `starts` is scanned by now, `block_total` its sum."""
    count = int(parameters["count"][0])
    mine = mates[:count]
    every = triangle_boxes[: 6 * count].reshape(count, 2, 3)
    row = np.flatnonzero(mark_starts(mine))
    at = starts[row]
    pair = mine[row] < REMOVED
    lead = row[pair]
    other = mine[lead] & np.uint32(TRIANGLE_MASK)
    corner_bits = np.uint32(~TRIANGLE_MASK & 0xFFFFFFFF)
    out = blocks[: 2 * count].reshape(count, 2)
    out[at] = np.stack([row, np.full(len(row), NONE)], axis=1)
    out[at[pair], 0] |= mine[lead] & corner_bits
    out[at[pair], 1] = mine[other] & corner_bits | other
    box = every[row]
    box[pair, 0] = np.minimum(every[lead, 0], every[other, 0])
    box[pair, 1] = np.maximum(every[lead, 1], every[other, 1])
    boxes[: 6 * count].reshape(count, 2, 3)[at] = box
    state[0] = block_total[0]
    removed = mine == REMOVED
    state[1] += np.uint32((~removed).sum())
    for place, reason in ((2, REMOVED_DEGENERATE), (3, REMOVED_NONFINITE)):
        state[place] += np.uint32((removed & (every[:, 1, 0] == -reason)).sum())
