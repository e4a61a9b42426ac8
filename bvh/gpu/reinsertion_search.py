"""The search of the reinsertion: for every candidate the place where it costs least.

Taking a node out frees its parent's area and shrinks the ancestors; putting it in as the sibling
of a target adds the area of their union and grows what lies between. From the candidate upwards
every ancestor is a "pivot": the subtree on its other side is searched by branch and bound, and so
is the place beside the ancestor itself. Source: Meister and Bittner 2018, section 4; there without
a stack, here with one, because a stack holds what was saved so far exactly and lets the child with
more to gain go first.

A node's budget is what was freed less what its ancestors below the pivot grew by; the gain of a
place is its parent's budget less the area of the union.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import LARGEST
from bvh.gpu.reinsertion_records import CANDIDATES, STACK, place
from bvh.tree import EMPTY

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


def scaled_area(boxes: F32, scale: np.float32) -> F32:
    """Half the surface area of boxes `[..., 2, 3]`, sides scaled; float32 in the shader's order."""
    return _area(boxes[..., 0, :], boxes[..., 1, :], scale)


def _area(low: F32, high: F32, scale: np.float32) -> F32:
    # An axis at a time: arrays of one side are far faster than those of three.
    with np.errstate(over="ignore"):
        x, y, z = (np.minimum(high[..., k] - low[..., k], LARGEST) * scale for k in range(3))
    return np.asarray(x * y + y * z + z * x)


def sibling_of(pairs: I32, node: I32) -> I32:
    """The other one of each pair of children."""
    return np.where(pairs[:, 0] == node, pairs[:, 1], pairs[:, 0])


def reinsertion_search(
    parameters: NDArray[Any],
    progress: NDArray[Any],
    tally: U32,
    candidates: I32,
    children: I32,
    parents: I32,
    bounds: F32,
    boxes: F32,
    moves: U32,
) -> None:
    """Twin of reinsertion_search.wgsl: target and gain (bits of a float32, 0 for no move) of every
    candidate."""
    nodes, steps = int(parameters["nodes"][0]), int(parameters["steps"][0])
    scale, least = progress["scale"][0], progress["least_gain"][0]
    count = int(tally[CANDIDATES])
    pairs = children.reshape(-1, 2)
    inner = bounds[: 6 * nodes].reshape(-1, 2, 3)
    leaf = boxes[: 6 * (len(boxes) // 6)].reshape(-1, 2, 3)

    def box_of(named: I32) -> F32:
        found = inner[np.maximum(named, 0)]
        outer = named < 0
        found[outer] = leaf[~named[outer]]
        return found

    def joined_area(a: F32, b: F32) -> F32:
        return _area(
            np.minimum(a[..., 0, :], b[..., 0, :]), np.maximum(a[..., 1, :], b[..., 1, :]), scale
        )

    node = candidates[:count].copy()
    mine = box_of(node)
    mine_area = scaled_area(mine, scale)
    own = parents[place(node, nodes)]
    best = np.full(count, least, np.float32)
    target = np.full(count, EMPTY, np.int32)
    below, pivot = node.copy(), own.copy()
    rest = np.empty((count, 2, 3), np.float32)
    rest[:, 0], rest[:, 1] = LARGEST, -LARGEST
    freed = scaled_area(inner[own], scale)
    stack_node = np.empty((count, STACK), np.int32)
    stack_budget = np.empty((count, STACK), np.float32)
    top = np.zeros(count, np.int64)

    def offer(rows: I64, gain: F32, at: I32, allowed: NDArray[np.bool_] | bool = True) -> None:
        better = (gain > best[rows]) & allowed
        best[rows[better]] = gain[better]
        target[rows[better]] = at[better]

    def push(rows: I64, at: I32, budget: F32, wanted: NDArray[np.bool_]) -> None:
        wanted = wanted & (top[rows] < STACK)
        rows = rows[wanted]
        stack_node[rows, top[rows]] = at[wanted]
        stack_budget[rows, top[rows]] = budget[wanted]
        top[rows] += 1

    live = np.arange(count)
    for _ in range(steps):
        live = live[(top[live] > 0) | (pivot[live] >= 0)]
        if not len(live):
            break
        idle = top[live] == 0
        rows = live[~idle]
        top[rows] -= 1
        budget = stack_budget[rows, top[rows]]
        worth = budget - mine_area[rows] > best[rows]
        rows, budget = rows[worth], budget[worth]
        pair = pairs[stack_node[rows, top[rows]]]
        box = box_of(pair)
        joined = joined_area(box, mine[rows][:, None])
        for side in (0, 1):
            offer(rows, budget - joined[:, side], pair[:, side])
        after = budget[:, None] - (joined - scaled_area(box, scale))
        go = (pair >= 0) & (after - mine_area[rows][:, None] > best[rows][:, None])
        left_first = after[:, 0] >= after[:, 1]
        push(rows, pair[:, 1], after[:, 1], go[:, 1] & left_first)
        push(rows, pair[:, 0], after[:, 0], go[:, 0])
        push(rows, pair[:, 1], after[:, 1], go[:, 1] & ~left_first)

        rows = live[idle]
        if not len(rows):
            continue
        sibling = sibling_of(pairs[pivot[rows]], below[rows])
        box = box_of(sibling)
        joined_one = joined_area(box, mine[rows])
        offer(rows, freed[rows] - joined_one, sibling)
        budget = freed[rows] - (joined_one - scaled_area(box, scale))
        push(rows, sibling, budget, (sibling >= 0) & (budget - mine_area[rows] > best[rows]))
        rest[rows, 0] = np.minimum(rest[rows, 0], box[:, 0])
        rest[rows, 1] = np.maximum(rest[rows, 1], box[:, 1])
        below[rows] = pivot[rows]
        pivot[rows] = parents[pivot[rows]]
        rows = rows[below[rows] != own[rows]]
        whole, shrunk = scaled_area(inner[below[rows]], scale), scaled_area(rest[rows], scale)
        offer(rows, freed[rows] - shrunk, below[rows], below[rows] != 0)
        freed[rows] += whole - shrunk
        final = (whole == shrunk) & (freed[rows] - mine_area[rows] <= best[rows])
        pivot[rows[final]] = -1
    out = moves[: 2 * count].reshape(-1, 2)
    out[:, 0] = target.view(np.uint32)
    out[:, 1] = np.where(target != EMPTY, best.view(np.uint32), 0)
