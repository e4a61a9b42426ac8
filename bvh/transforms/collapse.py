"""Binary to four wide: which binary nodes keep a box node of their own.

`collapse_greedy` starts every wide node with the two children of its binary node and opens the
internal child of largest surface area, twice (RADV and GPURT do the same). `collapse_best` takes,
among all ways to cut the same binary tree into wide nodes, one whose summed area of wide nodes is
smallest: leaves are fixed, so that sum is the part of the SAH that a collapse can change. It is
the dynamic programme of Ylitie, Karras and Laine 2017, section 3.1, level by level.

Children keep the binary tree's left-to-right order: an opened child is replaced in place.

Either way a traversal never needs more than STACK_LIMIT entries, given a binary tree of at most
MAX_DEPTH levels: where the siblings that wait could become too many, fewer children are opened.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bvh.tree import EMPTY, STACK_LIMIT, Tree, half_area, tree_levels

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
WIDTH = 4


def collapse_greedy(tree: Tree) -> Tree:
    """Four-wide tree over the same leaves; each wide node's bounds are its binary node's."""
    area = half_area(tree.bounds)
    return _build_wide(tree, lambda nodes: _greedy_slots(tree.children, area, nodes))


def _greedy_slots(children: I32, key: F64, nodes: I64) -> I32:
    """[k, 4] slots of the wide nodes that stand for binary `nodes`: twice the internal child of
    largest `key` is opened."""
    slots = np.full((len(nodes), WIDTH), EMPTY, np.int32)
    slots[:, :2] = children[nodes]
    for used in (2, 3):
        size = np.where(slots >= 0, key[np.maximum(slots, 0)], -1.0)
        pick = np.argmax(size, axis=1)  # the first of equals
        rows = np.flatnonzero(size.max(axis=1) >= 0)
        pick = pick[rows]
        opened = children[slots[rows, pick]]
        for slot in range(used, 1, -1):  # make room behind the opened child
            behind = pick < slot - 1
            slots[rows[behind], slot] = slots[rows[behind], slot - 1]
        slots[rows, pick] = opened[:, 0]
        slots[rows, pick + 1] = opened[:, 1]
    return slots


def collapse_best(tree: Tree) -> Tree:
    """Four-wide tree of least summed node area over the same binary tree."""
    children = tree.children
    count = len(children)
    # cost[n, i - 1]: least area of wide nodes below n when n's subtree may fill up to i slots of
    # its wide parent; left_share[n, i - 1]: how many of them go left, 0 = n is a slot itself.
    cost = np.zeros((count, WIDTH))
    left_share = np.zeros((count, WIDTH), np.int8)
    area = half_area(tree.bounds)

    def slot_cost(slots: I32) -> F64:
        return np.where((slots >= 0)[:, None], cost[np.maximum(slots, 0)], 0.0)

    for level in reversed(tree_levels(children)):
        left, right = slot_cost(children[level, 0]), slot_cost(children[level, 1])
        opened = np.empty((len(level), WIDTH + 1))
        share = np.zeros((len(level), WIDTH + 1), np.int8)
        for width in range(2, WIDTH + 1):
            options = np.stack([left[:, i - 1] + right[:, width - i - 1] for i in range(1, width)])
            best = np.argmin(options, axis=0)
            opened[:, width] = options[best, np.arange(len(level))]
            share[:, width] = best + 1
        own = area[level] + opened[:, WIDTH]
        cost[level, 0] = own
        for width in range(2, WIDTH + 1):
            better = opened[:, width] < own
            cost[level, width - 1] = np.where(better, opened[:, width], own)
            left_share[level, width - 1] = np.where(better, share[:, width], 0)
        # A wide node's own children always use the full width.
        left_share[level, 0] = share[:, WIDTH]
    return _build_wide(tree, lambda nodes: _best_slots(children, left_share, nodes))


def _best_slots(children: I32, left_share: NDArray[np.int8], nodes: I64) -> I32:
    """Opens children until every slot's share is one, keeping left-to-right order."""
    k = len(nodes)
    slots = np.full((k, WIDTH), EMPTY, np.int32)
    share = np.zeros((k, WIDTH), np.int8)
    slots[:, :2] = children[nodes]
    share[:, 0] = left_share[nodes, 0]
    share[:, 1] = WIDTH - left_share[nodes, 0]
    used = np.full(k, 2)
    for _ in range(WIDTH - 2):
        for position in range(WIDTH - 1):
            inner = (slots[:, position] >= 0) & (share[:, position] > 1)
            rows = np.flatnonzero(inner)
            node = slots[rows, position]
            width = share[rows, position]
            split = left_share[node, width - 1]
            closed = split == 0
            share[rows[closed], position] = 1
            rows, node, width, split = (x[~closed] for x in (rows, node, width, split))
            for slot in range(WIDTH - 1, position + 1, -1):
                slots[rows, slot] = slots[rows, slot - 1]
                share[rows, slot] = share[rows, slot - 1]
            slots[rows, position] = children[node, 0]
            slots[rows, position + 1] = children[node, 1]
            share[rows, position] = split
            share[rows, position + 1] = width - split
            used[rows] += 1
    return slots


def _build_wide(tree: Tree, choose: Callable[[I64], I32]) -> Tree:
    """Wide nodes level by level from the root; `choose(binary nodes)` gives their slots."""
    height = np.zeros(len(tree.children))
    for nodes in reversed(tree_levels(tree.children)):
        below = tree.children[nodes]
        height[nodes] = 1 + np.where(below >= 0, height[np.maximum(below, 0)], 0).max(axis=1)

    def unopened(nodes: I64) -> I32:
        slots = np.full((len(nodes), WIDTH), EMPTY, np.int32)
        slots[:, :2] = tree.children[nodes]
        return slots

    level: I64 = np.zeros(1, np.int64)
    waiting = np.zeros(1, np.int64)  # siblings left behind on the way to each node
    rows: list[I32] = []
    binary: list[I64] = []
    used = 1
    while len(level):
        slots = choose(level)
        # Next best: open the tallest children. Last: none at all, which always fits, because a
        # binary node leaves one sibling a level: `waiting + height + 1` does not grow downwards.
        for fallback in (lambda n: _greedy_slots(tree.children, height, n), unopened):
            tight = np.flatnonzero(_entries(slots, height, waiting) > STACK_LIMIT)
            slots[tight] = fallback(level[tight])
        inner = slots >= 0
        next_level: I64 = slots[inner].astype(np.int64)
        left = waiting + (slots != EMPTY).sum(axis=1) - 1
        waiting = np.broadcast_to(left[:, None], slots.shape)[inner]
        slots[inner] = used + np.arange(len(next_level))
        used += len(next_level)
        rows.append(slots)
        binary.append(level)
        level = next_level
    return Tree(np.concatenate(rows), tree.bounds[np.concatenate(binary)])


def _entries(slots: I32, height: F64, waiting: I64) -> F64:
    """[k] entries that a traversal below these wide nodes can always be held to: what waits, the
    other slots, and one entry for every binary level of the tallest one."""
    tallest = np.where(slots >= 0, height[np.maximum(slots, 0)], 0.0).max(axis=1)
    return np.asarray(waiting + (slots != EMPTY).sum(axis=1) + tallest)
