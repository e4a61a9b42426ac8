"""The neutral tree between builders and the encoder: topology and boxes, no guest bits.

A tree has inner nodes only; leaves are references to primitives inside `children`. Node 0 is the
root. A binary tree has width 2, a collapsed one width 4. All passes below walk whole levels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Bounds = NDArray[np.float32]  # [n, 2, 3] min, max

# Levels of binary inner nodes that builders and optimisers keep to, so that a collapse can stay
# within STACK_LIMIT entries waiting for any ray at all; with eight more for the TLAS that makes a
# stack of 64.
MAX_DEPTH = 48
STACK_LIMIT = 56

EMPTY = np.int32(-(2**31))  # an unused child slot; a leaf of primitive p is ~p


@dataclass(frozen=True, slots=True)
class Tree:
    """`children[i, c]` is an inner node (>= 0), `~primitive` (< 0) or EMPTY.

    `bounds[i]` encloses node i. A tree of no primitives is a root with empty slots (its bounds
    are min +inf, max -inf), a tree of one primitive is a root with one leaf.
    """

    children: I32  # [inner, width]
    bounds: Bounds  # [inner, 2, 3]

    @property
    def width(self) -> int:
        return int(self.children.shape[1])


def leaf_slots(children: I32) -> NDArray[np.bool_]:
    """Mask of the slots that hold a leaf."""
    return (children < 0) & (children != EMPTY)


def tree_levels(children: I32) -> list[I64]:
    """Inner node indices by depth, root first. A node reached twice, or an index out of range,
    is a ValueError."""
    count = len(children)
    seen = np.zeros(count, np.bool_)
    level = np.zeros(1, np.int64)
    seen[0] = True
    levels = []
    while len(level):
        levels.append(level)
        slots = children[level]
        level = slots[slots >= 0].astype(np.int64)
        if len(level) and int(level.max()) >= count:
            raise ValueError(f"child index {int(level.max())} of {count} inner nodes")
        if seen[level].any() or len(np.unique(level)) != len(level):
            raise ValueError("an inner node has two parents")
        seen[level] = True
    return levels


def stack_bound(children: I32) -> int:
    """Most entries a depth-first traversal can have waiting: all children of a node on top of the
    siblings that were left on the way to it. No ray can need more."""
    waiting = np.zeros(len(children), np.int64)
    used = (children != EMPTY).sum(axis=1)
    for level in tree_levels(children):
        slots = children[level]
        inner = slots >= 0
        above = np.broadcast_to((waiting[level] + used[level] - 1)[:, None], slots.shape)
        waiting[slots[inner]] = above[inner]
    return int((waiting + used).max())


def empty_bounds(count: int) -> Bounds:
    """Boxes that any union replaces: min +inf, max -inf."""
    bounds = np.empty((count, 2, 3), np.float32)
    bounds[:, 0] = np.inf
    bounds[:, 1] = -np.inf
    return bounds


def child_bounds(children: I32, bounds: Bounds, primitive_bounds: Bounds) -> NDArray[np.float32]:
    """[n, width, 2, 3] boxes of every slot of `children` (any rows); empty slots are empty."""
    flat = children.reshape(-1)
    out = empty_bounds(len(flat))
    inner = flat >= 0
    out[inner] = bounds[flat[inner]]
    leaf = leaf_slots(flat)
    out[leaf] = primitive_bounds[~flat[leaf]]
    return out.reshape(*children.shape, 2, 3)


def fit_bounds(children: I32, primitive_bounds: Bounds) -> Tree:
    """The tree of that topology with exact bounds, computed from the deepest level up."""
    bounds = empty_bounds(len(children))
    for level in reversed(tree_levels(children)):
        boxes = child_bounds(children[level], bounds, primitive_bounds)
        bounds[level, 0] = boxes[:, :, 0].min(axis=1)
        bounds[level, 1] = boxes[:, :, 1].max(axis=1)
    return Tree(children, bounds)


def half_area(bounds: NDArray[np.float32]) -> NDArray[np.float64]:
    """Half the surface area of boxes `[..., 2, 3]`, in float64 so that it cannot overflow;
    0 for an empty box."""
    low = bounds[..., 0, :].astype(np.float64)
    high = bounds[..., 1, :].astype(np.float64)
    with np.errstate(invalid="ignore"):
        size = np.where(high >= low, high - low, 0.0)
    x, y, z = size[..., 0], size[..., 1], size[..., 2]
    return np.asarray(x * y + y * z + z * x)


def check_tree(tree: Tree, primitive_bounds: Bounds) -> list[str]:
    """What is wrong with `tree`, one line each, empty when nothing is: every inner node reached
    once, every primitive in exactly one leaf, every box around its children."""
    count = len(primitive_bounds)
    if tree.bounds.shape != (len(tree.children), 2, 3):
        return [f"bounds of shape {tree.bounds.shape} for {len(tree.children)} inner nodes"]
    try:
        levels = tree_levels(tree.children)
    except ValueError as error:
        return [str(error)]
    faults = []
    reached = sum(len(level) for level in levels)
    if reached != len(tree.children):
        faults.append(f"{len(tree.children) - reached} inner nodes cannot be reached")
    leaves = ~tree.children[leaf_slots(tree.children)]
    if len(leaves) and int(leaves.max()) >= count:
        return [*faults, f"leaf of primitive {int(leaves.max())}, there are {count}"]
    uses = np.bincount(leaves, minlength=count)
    for primitive in np.flatnonzero(uses != 1)[:8]:
        faults.append(f"primitive {primitive} is in {uses[primitive]} leaves")
    boxes = child_bounds(tree.children, tree.bounds, primitive_bounds)
    low = (boxes[:, :, 0] < tree.bounds[:, None, 0]).any(axis=(1, 2))
    high = (boxes[:, :, 1] > tree.bounds[:, None, 1]).any(axis=(1, 2))
    for node in np.flatnonzero(low | high)[:8]:
        faults.append(f"node {node} does not enclose its children")
    return faults


def depth_first(children: I32) -> tuple[I64, I64]:
    """Ranks of a preorder walk that visits slots in order: `[inner]` rank of every inner node
    among inner nodes, `[primitive]` rank of every leaf among leaves (indexed by primitive, which
    must be 0..leaves-1)."""
    count = len(children)
    levels = tree_levels(children)
    is_leaf = leaf_slots(children)
    # Subtree sizes from the deepest level up, then positions from the root down.
    inner_below = np.ones(count, np.int64)
    leaf_below = np.zeros(count, np.int64)
    slot_inner = np.zeros(children.shape, np.int64)
    slot_leaf = is_leaf.astype(np.int64)
    for level in reversed(levels):
        slots = children[level]
        inner = slots >= 0
        slot_inner[level] = np.where(inner, inner_below[np.maximum(slots, 0)], 0)
        slot_leaf[level] += np.where(inner, leaf_below[np.maximum(slots, 0)], 0)
        inner_below[level] += slot_inner[level].sum(axis=1)
        leaf_below[level] = slot_leaf[level].sum(axis=1)
    inner_rank = np.zeros(count, np.int64)
    leaf_start = np.zeros(count, np.int64)
    leaf_rank = np.zeros(int(is_leaf.sum()), np.int64)
    inner_before = np.cumsum(slot_inner, axis=1) - slot_inner
    leaf_before = np.cumsum(slot_leaf, axis=1) - slot_leaf
    for level in levels:
        slots = children[level]
        inner = slots >= 0
        inner_at = inner_rank[level][:, None] + 1 + inner_before[level]
        leaf_at = leaf_start[level][:, None] + leaf_before[level]
        inner_rank[slots[inner]] = inner_at[inner]
        leaf_start[slots[inner]] = leaf_at[inner]
        leaf = is_leaf[level]
        leaf_rank[~slots[leaf]] = leaf_at[leaf]
    return inner_rank, leaf_rank
