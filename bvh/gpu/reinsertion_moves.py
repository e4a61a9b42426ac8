"""The moves of a round of reinsertion: who is asked, which moves win, how they are carried out.

Candidates are nodes whose parent's area is among the largest: a histogram over the first bits of
the float gives the least area that lets `batch * stride` nodes in, and each round takes one in
`stride` of them, so that one without a better place is not asked again at once.

A move locks the six nodes whose links it changes (its node, the parent, the grandparent, the
sibling, the target, the target's parent) by a maximum over its gain and, in a dispatch of its own,
over the node's number among those of that gain; moves that hold all six are carried out.
Conflicts along paths are let be, as in Meister and Bittner 2018: gains may then add up wrongly,
which the verdict on the round sees. Links are another matter: a move from outside into a subtree
that moves itself could close a cycle and is refused, whether or not the other one is carried out.
(Without such moves, each node of a cycle would lie inside the next one's subtree before the round.)
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import LARGEST
from bvh.gpu.reinsertion_records import (
    BIN_SHIFT,
    BINS,
    CANDIDATES,
    LEAST_BIN,
    LEAST_GAIN,
    LEVEL_SLOTS,
    LEVELS,
    MOVES,
    place,
)
from bvh.gpu.reinsertion_search import scaled_area, sibling_of

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


def reinsertion_links(
    parameters: NDArray[Any],
    state: NDArray[Any],
    children: I32,
    bounds: F32,
    parents: I32,
    moving: U32,
    marks: U32,
    progress: NDArray[Any],
) -> None:
    """Twin of reinsertion_links.wgsl: parents of all nodes, `progress` before the first round."""
    nodes, kept = int(parameters["nodes"][0]), int(state["kept"][0])
    root = bounds[:6].reshape(2, 3)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.minimum(root[1] - root[0], LARGEST).max()
    exponent = int(np.clip(largest.view(np.uint32) >> np.uint32(23), 1, 252))
    scale = np.array([(254 - exponent) << 23], np.uint32).view(np.float32)[0]
    progress[:] = np.zeros(1, progress.dtype)
    progress["scale"] = scale
    progress["least_gain"] = np.float32(LEAST_GAIN) * scaled_area(root, scale)
    progress["done"] = kept < 4
    parents[0] = -1
    moving[nodes : nodes + kept] = 0
    inner = max(kept - 1, 0)
    moving[:inner] = marks[:inner] = 0
    pairs = children[: 2 * inner].reshape(-1, 2)
    for side in (0, 1):
        parents[place(pairs[:, side], nodes)] = np.arange(inner)


def _movable(
    parameters: NDArray[Any], state: NDArray[Any], parents: I32, stride: int
) -> tuple[I32, I32]:
    """One node in `stride`, and its parent, of those that can move: all but the root and its
    children. Inner nodes count from 0, leaves from the number of primitives."""
    nodes, kept = int(parameters["nodes"][0]), int(state["kept"][0])
    turn = int(parameters["round"][0])
    inner = np.arange(-turn % stride, kept - 1, stride, dtype=np.int32)
    leaf = np.arange(-(turn + kept) % stride, kept, stride, dtype=np.int32)
    node = np.concatenate([inner, ~leaf])
    parent = np.concatenate([parents[inner], parents[nodes + leaf]])
    movable = parent > 0
    return node[movable], parent[movable]


def _bins(bounds: F32, parent: I32, scale: np.float32) -> U32:
    """The bin of each parent's area."""
    low, high = int(parent.min(initial=0)), int(parent.max(initial=0)) + 1
    area = scaled_area(bounds[6 * low : 6 * high].reshape(-1, 2, 3), scale)
    return (area.view(np.uint32) >> np.uint32(BIN_SHIFT))[parent - low]


def reinsertion_weigh(
    parameters: NDArray[Any],
    state: NDArray[Any],
    progress: NDArray[Any],
    parents: I32,
    bounds: F32,
    locks: U32,
    histogram: U32,
) -> None:
    """Twin of reinsertion_weigh.wgsl: adds to `histogram` how many nodes have a parent in each
    bin of areas, and takes all locks off."""
    if progress["done"][0]:
        return
    _, parent = _movable(parameters, state, parents, 1)
    bins = _bins(bounds, parent, progress["scale"][0])
    histogram += np.bincount(bins, minlength=BINS).astype(np.uint32)
    nodes, kept = int(parameters["nodes"][0]), int(state["kept"][0])
    locks[: 2 * (kept - 1)] = 0
    locks[2 * nodes : 2 * (nodes + kept)] = 0


def reinsertion_choose(parameters: NDArray[Any], histogram: U32, tally: U32) -> None:
    """Twin of reinsertion_choose.wgsl: the last bin from the top down that it takes to let
    `batch * stride` nodes in; the round's counters and the histogram at zero."""
    wanted = int(parameters["batch"][0]) * int(parameters["stride"][0])
    inside = np.cumsum(histogram[::-1], dtype=np.int64)
    if wanted:
        at = int(np.searchsorted(inside, wanted))
        tally[LEAST_BIN] = max(BINS - 1 - at, 0)
    histogram[:] = 0
    tally[[CANDIDATES, MOVES]] = 0
    tally[LEVELS : LEVELS + LEVEL_SLOTS] = 0


def reinsertion_select(
    parameters: NDArray[Any],
    state: NDArray[Any],
    progress: NDArray[Any],
    parents: I32,
    bounds: F32,
    tally: U32,
    candidates: I32,
) -> None:
    """Twin of reinsertion_select.wgsl: the round's candidates (there in any order)."""
    if progress["done"][0]:
        return
    node, parent = _movable(parameters, state, parents, int(parameters["stride"][0]))
    chosen = node[_bins(bounds, parent, progress["scale"][0]) >= tally[LEAST_BIN]]
    tally[CANDIDATES] = len(chosen)
    candidates[: len(chosen)] = chosen


def _open_moves(tally: U32, moves: U32) -> tuple[I64, U32]:
    """Slots of the moves still in the race, and all moves `[candidates, 2]`."""
    rows = moves[: 2 * int(tally[CANDIDATES])].reshape(-1, 2)
    return np.flatnonzero(rows[:, 1]), rows


def _touched(nodes: int, node: I32, target: I32, children: I32, parents: I32) -> I64:
    """[moves, 6] places of the nodes that each move locks."""
    above = parents[place(node, nodes)]
    sibling = sibling_of(children.reshape(-1, 2)[above], node)
    under = parents[place(target, nodes)]
    rows = (node, above, parents[above], sibling, target, under)
    return np.stack([place(row, nodes) for row in rows], axis=1)


def reinsertion_claim(
    parameters: NDArray[Any],
    tally: U32,
    candidates: I32,
    moves: U32,
    children: I32,
    parents: I32,
    locks: U32,
    *,
    by_node: bool,
) -> None:
    """Twin of reinsertion_claim.wgsl: locks hold the largest gain that asked for their node and,
    once that is final (`by_node`), one more than the place of the last node with that gain."""
    nodes = int(parameters["nodes"][0])
    slots, rows = _open_moves(tally, moves)
    node, gain = candidates[slots], rows[slots, 1]
    at = _touched(nodes, node, rows[slots, 0].view(np.int32), children, parents)
    lock = locks.reshape(-1, 2)
    for column in at.T:
        if not by_node:
            np.maximum.at(lock[:, 0], column, gain)
        else:
            most = lock[column, 0] == gain
            own = (place(node, nodes) + 1).astype(np.uint32)
            np.maximum.at(lock[:, 1], column[most], own[most])


claim_by_gain = partial(reinsertion_claim, by_node=False)
claim_by_node = partial(reinsertion_claim, by_node=True)


def reinsertion_judge(
    parameters: NDArray[Any],
    tally: U32,
    candidates: I32,
    children: I32,
    parents: I32,
    locks: U32,
    moves: U32,
    moving: U32,
) -> None:
    """Twin of reinsertion_judge.wgsl: moves that miss a lock lose their gain; nodes of the others
    are marked with the round."""
    nodes = int(parameters["nodes"][0])
    slots, rows = _open_moves(tally, moves)
    node = candidates[slots]
    at = _touched(nodes, node, rows[slots, 0].view(np.int32), children, parents)
    own = place(node, nodes)
    mine = np.stack([rows[slots, 1], (own + 1).astype(np.uint32)], axis=1)
    holds = (locks.reshape(-1, 2)[at] == mine[:, None]).all(axis=(1, 2))
    moving[own[holds]] = parameters["round"][0]
    rows[slots[~holds], 1] = 0


def reinsertion_check(
    parameters: NDArray[Any],
    candidates: I32,
    parents: I32,
    moving: U32,
    heights: U32,
    moves: U32,
    tally: U32,
) -> None:
    """Twin of reinsertion_check.wgsl: refuses what could close a cycle or goes too deep."""
    nodes = int(parameters["nodes"][0])
    slots, rows = _open_moves(tally, moves)
    node, target = candidates[slots], rows[slots, 0].view(np.int32)
    height = [np.where(n >= 0, heights[np.maximum(n, 0)], 0) for n in (node, target)]
    level, there_level = _levels(nodes, parents, node), _levels(nodes, parents, target)
    levels = there_level + 1 + np.maximum(*height)
    allowed = np.ones(len(slots), np.bool_)
    walk, there = node.copy(), target.copy()
    while len(apart := np.flatnonzero(there != walk)):
        deeper = there_level[apart] >= level[apart]
        rows_there, rows_node = apart[deeper], apart[~deeper]
        at = place(there[rows_there], nodes)
        allowed[rows_there] &= moving[at] != parameters["round"][0]
        there[rows_there] = parents[at]
        there_level[rows_there] -= 1
        walk[rows_node] = parents[place(walk[rows_node], nodes)]
        level[rows_node] -= 1
    allowed &= levels <= int(parameters["max_depth"][0])
    rows[slots[~allowed], 1] = 0
    tally[MOVES] += int(allowed.sum())


def _levels(nodes: int, parents: I32, node: I32) -> I64:
    """Steps from each node to the root."""
    level = np.zeros(len(node), np.int64)
    walk = node.copy()
    while len(going := np.flatnonzero(walk != 0)):
        level[going] += 1
        walk[going] = parents[place(walk[going], nodes)]
    return level


def reinsertion_apply(
    parameters: NDArray[Any], tally: U32, candidates: I32, moves: U32, children: I32, parents: I32
) -> None:
    """Twin of reinsertion_apply.wgsl: puts each node beside its target, under its old parent,
    which comes along; the grandparent is left in place of the target."""
    nodes = int(parameters["nodes"][0])
    slots, rows = _open_moves(tally, moves)
    node, target = candidates[slots], rows[slots, 0].view(np.int32).copy()
    pairs = children.reshape(-1, 2)
    above = parents[place(node, nodes)]
    sibling = sibling_of(pairs[above], node)
    grand, under = parents[above], parents[place(target, nodes)]
    _replace(pairs, grand, above, sibling)
    parents[place(sibling, nodes)] = grand
    _replace(pairs, under, target, above)
    pairs[above, 0], pairs[above, 1] = target, node
    parents[place(target, nodes)] = above
    parents[above] = under
    rows[slots, 0] = grand


def _replace(pairs: I32, at: I32, old: I32, fresh: I32) -> None:
    side = (pairs[at, 1] == old).astype(np.int64)
    pairs[at, side] = fresh
