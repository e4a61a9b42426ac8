"""Twins of pairing within a tile and of the blocks that come of it (see `bvh.gpu.pairing`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import REMOVED_DEGENERATE, REMOVED_NONFINITE
from bvh.gpu.pair_edges import (
    choose,
    mark_starts,
    rank_candidates,
    settle,
    tile_edges,
)
from bvh.gpu.pair_records import NONE, REMOVED, TRIANGLE_MASK

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
        ids = triangle_ids[: 2 * count].reshape(count, 2)
        partner, rank = rank_candidates(*tile_edges(corners, usable), corners, ids, boxes)
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
    count_blocks(state, mine == REMOVED, every, block_total)


def count_blocks(
    state: U32, removed: NDArray[np.bool_], triangle_boxes: F32, block_total: U32
) -> None:
    """The counts of block_output.wgsl, from triangles' boxes `[n, 2, 3]`."""
    state[0] = block_total[0]
    state[1] += np.uint32((~removed).sum())
    for place, reason in ((2, REMOVED_DEGENERATE), (3, REMOVED_NONFINITE)):
        state[place] += np.uint32((removed & (triangle_boxes[:, 1, 0] == -reason)).sum())
