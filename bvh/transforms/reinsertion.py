"""Reinsertion: takes subtrees out of a binary tree and puts them back where they cost less.

Every round looks at the nodes below the parents of largest area, finds for each the position
that lowers the summed area of inner nodes most, and carries out those moves that do not get in
each other's way. Source: Bittner, Hapala and Havran 2013 (insertion-based optimisation) and
Meister and Bittner 2018 (the search from a node upwards over its ancestors, "pivots").

The search is vectorised over candidates: each has a stack of its own, and one step of the loop
advances all of them. Node ids here: inner nodes first, then leaves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.tree import MAX_DEPTH, Bounds, Tree, fit_bounds, tree_levels

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

_STACK = 96
# Gains below this fraction of the root's area are rounding noise.
_LEAST_GAIN = 1e-7


@dataclass(frozen=True, slots=True)
class ReinsertionConfig:
    """`rounds` of at most `batch` candidates each; a search ends after `steps` nodes with the
    best position found by then; rounds end early when one gains less than `least_progress` of
    the tree's summed area. A move that would make the tree deeper than `max_depth` is not made."""

    rounds: int = 30
    batch: int = 1 << 13
    steps: int = 200
    least_progress: float = 1e-4
    max_depth: int = MAX_DEPTH


@dataclass(slots=True)
class _Graph:
    """The tree with parents. Rows of `box` are -min and max, so that a union is one maximum."""

    child: I32  # [inner, 2] node ids
    parent: I32  # [nodes], -1 for the root
    box: F32  # [nodes, 6]
    area: F32  # [nodes]
    height: I32  # [nodes] levels of inner nodes at and below, 0 for a leaf


@dataclass(frozen=True, slots=True)
class _Moves:
    node: I32
    target: I32
    gain: F32


def reinsert(tree: Tree, primitive_bounds: Bounds, config: ReinsertionConfig) -> Tree:
    """A tree over the same leaves whose summed inner area is not larger. Trees of fewer than
    four leaves come back unchanged."""
    inner = len(tree.children)
    if len(primitive_bounds) < 4:
        return tree
    graph = _graph(tree, primitive_bounds)
    cost = float(graph.area[:inner].sum(dtype=np.float64))
    best = graph.child
    for number in range(config.rounds):
        moves = _search(graph, _candidates(graph, number, config.batch), config.steps)
        graph.child = graph.child.copy()
        _refit(graph, _apply(graph, moves, config.max_depth))
        before, cost = cost, float(graph.area[:inner].sum(dtype=np.float64))
        if cost >= before:  # moves that were judged apart can add up to a loss
            break
        best = graph.child
        if before - cost < config.least_progress * cost:
            break
    return fit_bounds(np.where(best < inner, best, ~(best - inner)), primitive_bounds)


def _graph(tree: Tree, primitive_bounds: Bounds) -> _Graph:
    inner = len(tree.children)
    child = np.where(tree.children >= 0, tree.children, inner + ~tree.children).astype(np.int32)
    both = np.concatenate([tree.bounds, primitive_bounds])
    parent = np.full(len(both), -1, np.int32)
    parent[child.reshape(-1)] = np.repeat(np.arange(inner, dtype=np.int32), 2)
    rows = np.concatenate([-both[:, 0], both[:, 1]], axis=1)
    # Scaled by a power of two, so that areas stay in float32's range.
    largest = float(np.abs(rows).max())
    exponent = int(np.ceil(np.log2(largest))) if largest > 0.0 else 0
    box = np.ldexp(rows, -exponent).astype(np.float32)
    height = np.zeros(len(both), np.int32)
    for level in reversed(tree_levels(tree.children)):
        height[level] = 1 + height[child[level]].max(axis=1)
    return _Graph(child, parent, box, _area(box), height)


def _refit(graph: _Graph, changed: I32) -> None:
    """Boxes, areas and heights of `changed` and of everything above, deepest first."""
    chain = [np.unique(changed)]
    while len(chain[-1]):
        above = graph.parent[chain[-1]]
        chain.append(np.unique(above[above >= 0]))
    nodes = np.unique(np.concatenate(chain))
    depth = np.zeros(len(nodes), np.int32)
    walk = nodes
    while (walk > 0).any():
        depth += walk > 0
        walk = np.where(walk > 0, graph.parent[walk], 0)
    for level in range(int(depth.max(initial=0)), -1, -1):
        rows = nodes[depth == level]
        pair = graph.child[rows]
        graph.box[rows] = np.maximum(graph.box[pair[:, 0]], graph.box[pair[:, 1]])
        graph.area[rows] = _area(graph.box[rows])
        graph.height[rows] = 1 + graph.height[pair].max(axis=1)


def _area(box: F32) -> F32:
    x, y, z = box[:, 3] + box[:, 0], box[:, 4] + box[:, 1], box[:, 5] + box[:, 2]
    return np.asarray(x * y + y * z + z * x)


def _candidates(graph: _Graph, number: int, batch: int) -> I32:
    """Nodes whose parent is large; a later round takes others of the same region, so that a
    candidate without a better place is not asked again at once."""
    nodes = np.flatnonzero(graph.parent > 0)  # neither the root nor its children
    stride = 1 + number % 4
    weight = graph.area[graph.parent[nodes]]
    wanted = min(len(nodes), batch * stride)
    top = nodes[np.argpartition(-weight, wanted - 1)[:wanted]]
    return np.sort(top)[number % stride :: stride].astype(np.int32)


def _search(graph: _Graph, node: I32, steps: int) -> _Moves:
    """The best move of every candidate; those without a gain are left out."""
    count = len(node)
    inner = len(graph.child)
    box, area = graph.box, graph.area
    best_gain = np.full(count, _LEAST_GAIN * float(area[0]), np.float32)
    best_target = np.full(count, -1, np.int32)
    stack = np.empty((count, _STACK), np.int32)
    stack_cost = np.empty((count, _STACK), np.float32)
    # The pivot path: `below` is the ancestor under the current pivot, `rest` its box without the
    # candidate, `freed` the area that taking the candidate out saves below the pivot.
    below = node.copy()
    parent = graph.parent[node]
    rest = np.full((count, 6), -np.inf, np.float32)
    freed = area[parent].copy()
    stack[:, 0] = _sibling(graph.child, parent, node)  # the first pivot is the own parent
    stack_cost[:, 0] = 0.0
    top = np.ones(count, np.int32)
    live = np.arange(count)
    for _ in range(steps):
        rising = live[top[live] == 0]
        if len(rising):
            passed = graph.parent[below[rising]]
            sibling = _sibling(graph.child, passed, below[rising])
            rest[rising] = np.maximum(rest[rising], box[sibling])
            shrunk = _area(rest[rising])
            own = passed == parent[rising]  # it goes away: its area is in `freed` already
            # The passed ancestor as target: the candidate becomes its sibling.
            gain = np.where(own | (passed == 0), -1.0, freed[rising] - shrunk)
            better = gain > best_gain[rising]
            best_gain[rising[better]] = gain[better]
            best_target[rising[better]] = passed[better]
            freed[rising] += np.where(own, 0.0, area[passed] - shrunk)
            below[rising] = passed
            risen = rising[passed != 0]
            on = below[risen]
            stack[risen, 0] = _sibling(graph.child, graph.parent[on], on)
            stack_cost[risen, 0] = 0.0
            top[risen] = 1
            live = live[top[live] > 0]
        if not len(live):
            break
        top[live] -= 1
        here = stack[live, top[live]]
        cost = stack_cost[live, top[live]]
        mine = node[live]
        joined = _area(np.maximum(box[here], box[mine]))
        gain = freed[live] - cost - joined
        better = gain > best_gain[live]
        found = live[better]
        best_gain[found] = gain[better]
        best_target[found] = here[better]
        # What is below costs at least the growth of `here` and the candidate's own area.
        cost = cost + joined - area[here]
        open_ = (here < inner) & (freed[live] - cost - area[mine] > best_gain[live])
        open_ &= top[live] < _STACK - 2
        rows = live[open_]
        pair = graph.child[here[open_]]
        at = top[rows]
        stack[rows, at] = pair[:, 0]
        stack[rows, at + 1] = pair[:, 1]
        stack_cost[rows, at] = cost[open_]
        stack_cost[rows, at + 1] = cost[open_]
        top[rows] += 2
    won = best_target >= 0
    return _Moves(node[won], best_target[won], best_gain[won])


def _sibling(child: I32, parent: I32, node: I32) -> I32:
    pair = child[parent]
    return np.where(pair[:, 0] == node, pair[:, 1], pair[:, 0])


def _apply(graph: _Graph, moves: _Moves, max_depth: int = MAX_DEPTH) -> I32:
    """Carries out those moves that touch no node of a better one and whose target does not lie
    inside a subtree that moves too (which could close a cycle). Returns the inner nodes whose
    children changed."""
    child, parent = graph.child, graph.parent
    order = np.argsort(-moves.gain, kind="stable")
    node, target = moves.node[order], moves.target[order]
    above = parent[node]
    sibling = _sibling(child, above, node)
    touched = np.stack([node, above, parent[above], sibling, target, parent[target]])
    rank = np.arange(len(node), dtype=np.int32)
    owner = np.full(len(parent), len(node), np.int32)
    for row in touched:
        np.minimum.at(owner, row, rank)
    kept = (owner[touched] == rank).all(axis=0)
    moving = np.zeros(len(parent), np.bool_)
    moving[node[kept]] = True
    walk = np.where(kept, target, 0)
    depth = np.ones(len(node), np.int32)  # of the new parent, 1 = the root
    while (walk > 0).any():
        kept &= ~moving[walk]
        depth += walk > 0
        walk = np.where(walk > 0, parent[walk], 0)
    below = np.maximum(graph.height[node], graph.height[target])
    kept &= depth + below <= max_depth
    node, target, above, sibling = node[kept], target[kept], above[kept], sibling[kept]
    grand = parent[above]
    _replace(child, grand, above, sibling)
    parent[sibling] = grand
    under = parent[target]
    _replace(child, under, target, above)
    child[above, 0], child[above, 1] = target, node
    parent[target] = parent[node] = above
    parent[above] = under
    return np.concatenate([above, grand, under])


def _replace(child: I32, at: I32, old: I32, new: I32) -> None:
    side = (child[at, 1] == old).astype(np.int64)
    child[at, side] = new
