"""What follows the moves of a round of reinsertion: bounds anew, and the verdict on the round.

Moves change the bounds of the nodes above them only. Those are marked by walks to the root, sorted
by level, and refitted from the deepest level up, one dispatch a level; before the first round all
nodes are. The summed area then says whether the round stands: one that did not lower it, or that
made the tree too deep, is taken back from copies of the nodes it changed. Rounds end when as many
on end as candidates have shares gained too little.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.reinsertion_records import (
    ACCEPTED,
    CANDIDATES,
    CURSORS,
    LEVEL_SLOTS,
    LEVELS,
    MOVES,
    NO_VERDICT,
    REJECTED,
    STARTS,
    SUM_TILE,
    place,
)
from bvh.gpu.reinsertion_search import scaled_area

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

LANES = 256


def _inner_count(state: NDArray[Any]) -> int:
    return max(int(state["kept"][0]), 2) - 1


def reinsertion_mark(
    parameters: NDArray[Any],
    state: NDArray[Any],
    progress: NDArray[Any],
    candidates: I32,
    moves: U32,
    parents: I32,
    tally: U32,
    marks: U32,
) -> None:
    """Twin of reinsertion_mark.wgsl: one more than the level in `marks`, and how many nodes of
    each level have one: all nodes in round 0, else those at and above every change of links."""
    if progress["done"][0]:
        return
    nodes, inner = int(parameters["nodes"][0]), _inner_count(state)
    if parameters["round"][0] == 0:
        wanted = np.arange(inner)
    else:
        rows = moves[: 2 * int(tally[CANDIDATES])].reshape(-1, 2)
        slots = np.flatnonzero(rows[:, 1])
        above = parents[place(candidates[slots], nodes)].astype(np.int64)
        chain = np.unique(np.concatenate([above, rows[slots, 0].astype(np.int64)]))
        inside = np.zeros(inner, np.bool_)
        while len(chain):
            inside[chain] = True
            chain = np.unique(parents[chain])
            chain = chain[chain >= 0]
            chain = chain[~inside[chain]]
        wanted = np.flatnonzero(inside)
    level = np.zeros(len(wanted), np.int64)
    walk = parents[wanted].astype(np.int64)
    while (walk >= 0).any():
        level += walk >= 0
        walk = np.where(walk >= 0, parents[walk], -1)
    level = np.minimum(level, LEVEL_SLOTS - 1)
    marks[wanted] = level + 1
    tally[LEVELS : LEVELS + LEVEL_SLOTS] += np.bincount(level, minlength=LEVEL_SLOTS).astype(
        np.uint32
    )


def reinsertion_levels(tally: U32) -> None:
    """Twin of reinsertion_levels.wgsl: where each level starts in `changed`."""
    ends = np.cumsum(tally[LEVELS : LEVELS + LEVEL_SLOTS])
    tally[STARTS] = 0
    tally[STARTS + 1 : STARTS + 1 + LEVEL_SLOTS] = ends
    tally[CURSORS : CURSORS + LEVEL_SLOTS] = tally[STARTS : STARTS + LEVEL_SLOTS]


def reinsertion_scatter(
    state: NDArray[Any], progress: NDArray[Any], marks: U32, tally: U32, changed: U32
) -> None:
    """Twin of reinsertion_scatter.wgsl: marked nodes by level (there in any order within one);
    the marks are taken off."""
    if progress["done"][0]:
        return
    inner = _inner_count(state)
    found = np.flatnonzero(marks[:inner])
    order = np.argsort(marks[found], kind="stable")
    changed[: len(found)] = found[order]
    marks[:inner] = 0
    tally[CURSORS : CURSORS + LEVEL_SLOTS] += tally[LEVELS : LEVELS + LEVEL_SLOTS]


def reinsertion_refit(
    parameters: NDArray[Any],
    tally: U32,
    changed: U32,
    children: I32,
    boxes: F32,
    bounds: F32,
    heights: U32,
) -> None:
    """Twin of reinsertion_refit.wgsl: bounds and heights (levels of inner nodes, 0 for a leaf) of
    the changed nodes of one level, from their children's."""
    first = STARTS + int(parameters["level"][0])
    rows = changed[tally[first] : tally[first + 1]]
    pair = children.reshape(-1, 2)[rows]
    inner = pair >= 0
    every = bounds[: 6 * (len(bounds) // 6)].reshape(-1, 2, 3)
    leaf = boxes[: 6 * (len(boxes) // 6)].reshape(-1, 2, 3)
    box = np.empty((*pair.shape, 2, 3), np.float32)
    box[inner] = every[pair[inner]]
    box[~inner] = leaf[~pair[~inner]]
    every[rows, 0] = box[:, :, 0].min(axis=1)
    every[rows, 1] = box[:, :, 1].max(axis=1)
    heights[rows] = 1 + np.where(inner, heights[np.maximum(pair, 0)], 0).max(axis=1)


def reinsertion_sum(
    parameters: NDArray[Any],
    state: NDArray[Any],
    progress: NDArray[Any],
    bounds: F32,
    partials: F32,
) -> None:
    """Twin of reinsertion_sum.wgsl: summed area of each SUM_TILE inner nodes, in a fixed
    order; 0 past the last."""
    if progress["done"][0]:
        return
    inner = _inner_count(state)
    tiles = -(-inner // SUM_TILE)
    area = np.zeros(tiles * SUM_TILE, np.float32)
    area[:inner] = scaled_area(bounds[: 6 * inner].reshape(-1, 2, 3), progress["scale"][0])
    partials[:] = 0
    partials[:tiles] = _fold(area.reshape(tiles, -1, LANES))


def _fold(values: F32) -> F32:
    """Sums `[..., items, LANES]`: a lane's items in order, then halves onto halves."""
    total = np.zeros((*values.shape[:-2], LANES), np.float32)
    for item in range(values.shape[-2]):
        total = total + values[..., item, :]
    while total.shape[-1] > 1:
        half = total.shape[-1] // 2
        total = total[..., :half] + total[..., half:]
    return total[..., 0]


def reinsertion_verdict(
    parameters: NDArray[Any],
    state: NDArray[Any],
    tally: U32,
    heights: U32,
    partials: F32,
    progress: NDArray[Any],
) -> None:
    """Twin of reinsertion_verdict.wgsl: `progress` after the round."""
    tiles = -(-_inner_count(state) // SUM_TILE)
    padded = np.zeros(-(-tiles // LANES) * LANES, np.float32)
    padded[:tiles] = partials[:tiles]
    p = progress[0]
    p["verdict"] = NO_VERDICT
    if p["done"]:
        return
    cost, before = _fold(padded.reshape(-1, LANES)), p["cost"]
    fits = not tally[LEVELS + LEVEL_SLOTS - 1] and heights[0] <= parameters["max_depth"][0]
    p["changed"] = tally[STARTS + LEVEL_SLOTS]
    if parameters["round"][0] == 0:
        p["first_cost"] = p["cost"] = cost
        p["verdict"] = ACCEPTED
        p["done"] = not fits
        return
    p["strikes"] += 1
    if fits and cost < before:
        if before - cost >= parameters["least_progress"][0] * cost:
            p["strikes"] = 0
        p["cost"] = cost
        p["verdict"] = ACCEPTED
        p["rounds"] += 1
        p["moves"] += tally[MOVES]
    else:  # moves that were judged apart can add up to a loss
        p["verdict"] = REJECTED
    p["done"] = p["strikes"] >= parameters["stride"][0]  # every share was asked


def reinsertion_settle(
    parameters: NDArray[Any],
    progress: NDArray[Any],
    changed: U32,
    children: I32,
    bounds: F32,
    heights: U32,
    parents: I32,
    kept_links: I32,
    kept_bounds: F32,
) -> None:
    """Twin of reinsertion_settle.wgsl: changed nodes to their copies, or back from them."""
    nodes, verdict = int(parameters["nodes"][0]), int(progress["verdict"][0])
    if verdict == NO_VERDICT:
        return
    rows = changed[: int(progress["changed"][0])]
    pairs, links = children[: 2 * nodes].reshape(-1, 2), kept_links[: 4 * nodes].reshape(-1, 4)
    box, kept_box = bounds[: 6 * nodes].reshape(-1, 6), kept_bounds[: 6 * nodes].reshape(-1, 6)
    if verdict == ACCEPTED:
        links[rows, :2] = pairs[rows]
        links[rows, 2] = heights[rows]
        links[rows, 3] = 0
        kept_box[rows] = box[rows]
        return
    pairs[rows] = links[rows, :2]
    heights[rows] = links[rows, 2]
    box[rows] = kept_box[rows]
    for side in (0, 1):
        parents[place(links[rows, side], nodes)] = rows
