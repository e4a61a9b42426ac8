"""What a node's record says of its subtree, and the record of two clusters merged.

The dynamic programme of `bvh.transforms.collapse.collapse_best` in float32, one step at each merge:
for 1, 2 and 3 slots of a wide parent, the least area of the wide nodes below, and how many bytes,
nodes and stack entries that takes. Twin of cluster_node.wgsl, which works bytes out in a sweep of
their own, as FP16 nodes need their slots' boxes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.cluster_records import (
    CLUSTER_NODE,
    HALF,
    LONGEST_SIDE,
    NARROW,
    ROOT_PARENT,
    SHORTEST_SIDE,
    SPARE_ENTRIES,
)
from bvh.layout import pack_half_bounds, unpack_half_bounds
from bvh.tree import EMPTY, empty_bounds

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Records = NDArray[Any]


def areas(boxes: F32) -> F32:
    """[n] half areas of boxes `[n, 2, 3]` in the shader's float32."""
    with np.errstate(over="ignore"):
        side = np.clip(boxes[:, 1] - boxes[:, 0], SHORTEST_SIDE, LONGEST_SIDE)
    x, y, z = side[:, 0], side[:, 1], side[:, 2]
    return np.asarray(x * y + y * z + z * x)


def child_boxes(children: I32, nodes: Records, boxes: F32) -> F32:
    """[n, 2, 3] of inner nodes and leaves; EMPTY ones are empty."""
    out = empty_bounds(len(children))
    inner = children >= 0
    out[inner, 0] = nodes["low"][children[inner]]
    out[inner, 1] = nodes["high"][children[inner]]
    leaf = ~inner & (children != EMPTY)
    out[leaf] = boxes[: 6 * (len(boxes) // 6)].reshape(-1, 2, 3)[~children[leaf]]
    return out


@dataclass(frozen=True, slots=True)
class _Parts:
    """What merged children say, [n, 3] for 1, 2 and 3 slots."""

    cost: F32
    units: I64
    counts: I64
    stack: I64
    depth: I64
    used: I64
    leaves: I64
    levels: I64

    def take(self, name: str, width: Any) -> Any:
        """Field `name` of each child at its `width`."""
        rows: NDArray[Any] = getattr(self, name)
        return rows[np.arange(len(rows)), np.asarray(width) - 1]


def _parts(children: I32, nodes: Records) -> _Parts:
    n = len(children)
    inner = children >= 0
    record = nodes[np.where(inner, children, 0)]
    stack = np.where(inner, record["stack"], 0).astype(np.int64)
    depth = np.where(inner, record["depth"], np.where(children == EMPTY, 0, 0x11000000))
    depth = depth.astype(np.int64)
    leaves = np.where(inner, record["leaves"], children != EMPTY).astype(np.int64)
    used = np.stack([np.minimum(leaves, 1), depth >> 24 & 15, depth >> 28], axis=1)
    shift = np.array([0, 8, 16])
    return _Parts(
        cost=np.where(inner[:, None], record["cost"], np.float32(0)).reshape(n, 3),
        units=np.where(inner[:, None], record["units"], 0).astype(np.int64),
        counts=np.where(inner[:, None], record["counts"], 0).astype(np.int64),
        stack=stack[:, None] >> shift & 255,
        depth=depth[:, None] >> shift & 255,
        used=used,
        leaves=leaves,
        levels=stack >> 24,
    )


def share_of(shares: Any, width: Any) -> I64:
    """Slots that go left where a node fills `width`; of its own four where `width` is 4."""
    bits = np.asarray(shares, np.int64)
    return np.where(np.asarray(width) == 4, bits, bits >> (2 * np.asarray(width) - 2) % 8) & 3


def slots_of(left: I32, right: I32, shares: U32, nodes: Records) -> I32:
    """[n, 4] children of wide nodes with `shares` over their binary children, in order."""
    n = len(left)
    narrow = (shares & NARROW) != 0
    share = np.where(narrow, 1, share_of(shares, 4))
    slots = np.full((n, 4), EMPTY, np.int32)
    width = np.zeros((n, 4), np.int64)
    slots[:, 0], slots[:, 1] = left, right
    width[:, 0], width[:, 1] = share, np.where(narrow, 1, 4 - share)
    for _ in range(2):
        for at in range(3):
            node = slots[:, at]
            open_it = (node >= 0) & (width[:, at] > 1)
            split = share_of(nodes["shares"][np.maximum(node, 0)], np.maximum(width[:, at], 2))
            rows = np.flatnonzero(open_it & (split > 0))
            width[open_it & (split == 0), at] = 1
            for slot in range(3, at + 1, -1):
                slots[rows, slot] = slots[rows, slot - 1]
                width[rows, slot] = width[rows, slot - 1]
            opened, split, all_of_it = node[rows], split[rows], width[rows, at].copy()
            slots[rows, at], slots[rows, at + 1] = nodes["left"][opened], nodes["right"][opened]
            width[rows, at], width[rows, at + 1] = split, all_of_it - split
    # An EMPTY right child (of a tree of one leaf) stays where it is, behind the leaf.
    return slots


def _wants_half(slots: I32, nodes: Records, boxes: F32, node_format: int) -> NDArray[np.bool_]:
    if node_format == 0:
        return np.zeros(len(slots), np.bool_)
    exact, stored = np.zeros((2, len(slots)), np.float32)
    in_range = np.ones(len(slots), np.bool_)
    for at in range(4):
        rows = np.flatnonzero(slots[:, at] != EMPTY)
        box = child_boxes(slots[rows, at], nodes, boxes)
        packed = pack_half_bounds(box[:, 0], box[:, 1])
        low, high = unpack_half_bounds(packed)
        finite = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
        in_range[rows] &= finite
        rows, box = rows[finite], box[finite]
        exact[rows] += areas(box)
        stored[rows] += areas(np.stack([low[finite], high[finite]], axis=1))
    if node_format == 1:
        return in_range
    return np.asarray(in_range & (stored <= np.float32(1.25) * exact))


def merge(left: I32, right: I32, box: F32, nodes: Records, boxes: F32, node_format: int) -> Records:
    """Records of nodes over `left` and `right` [n]; twin of `join` and `join_units` in
    cluster_node.wgsl."""
    a, b = _parts(left, nodes), _parts(right, nodes)
    n = len(left)
    opened_2 = a.cost[:, 0] + b.cost[:, 0]
    three = np.stack([a.cost[:, 0] + b.cost[:, 1], a.cost[:, 1] + b.cost[:, 0]], axis=1)
    four = np.stack([a.cost[:, i] + b.cost[:, 2 - i] for i in range(3)], axis=1)
    share_3, share_4 = np.argmin(three, axis=1) + 1, np.argmin(four, axis=1) + 1
    levels = 1 + np.maximum(a.levels, b.levels)

    def stack_of(used: I64, below: I64) -> I64:
        return np.asarray(np.maximum(used, np.maximum(used, 1) - 1 + below))

    def both(name: str, x: Any, y: Any) -> tuple[Any, Any]:
        return a.take(name, x), b.take(name, y)

    used = np.add(*both("used", share_4, 4 - share_4))
    below = np.maximum(*both("stack", share_4, 4 - share_4))
    narrow = stack_of(used, below) > levels + SPARE_ENTRIES
    x, y = np.where(narrow, 1, share_4), np.where(narrow, 1, 4 - share_4)
    used, below = np.add(*both("used", x, y)), np.maximum(*both("stack", x, y))
    shares = (share_4 | np.where(narrow, NARROW, 0)).astype(np.uint32)
    half = _wants_half(slots_of(left, right, shares, nodes), nodes, boxes, node_format)
    shares |= np.where(half, HALF, 0).astype(np.uint32)
    own = areas(box) + np.where(narrow, opened_2, four.min(axis=1))

    out = np.zeros(n, CLUSTER_NODE.dtype)
    units, counts, stack, depth = np.zeros((4, n, 3), np.int64)
    out["cost"] = own[:, None]
    units[:] = (np.where(half, 1, 2) + np.add(*both("units", x, y)))[:, None]
    counts[:] = (1 + np.add(*both("counts", x, y)))[:, None]
    stack[:] = stack_of(used, below)[:, None]
    depth[:] = (1 + np.maximum(*both("depth", x, y)))[:, None]
    slots = np.ones((n, 3), np.int64)
    for width, opened, share in (
        (2, opened_2, np.ones(n, np.int64)),
        (3, three.min(axis=1), share_3),
    ):
        rows = np.flatnonzero(opened < own)
        at, other = width - 1, width - share
        shares[rows] |= (share << (2 * width - 2)).astype(np.uint32)[rows]
        out["cost"][rows, at] = opened[rows]
        units[rows, at] = np.add(*both("units", share, other))[rows]
        counts[rows, at] = np.add(*both("counts", share, other))[rows]
        stack[rows, at] = np.maximum(*both("stack", share, other))[rows]
        depth[rows, at] = np.maximum(*both("depth", share, other))[rows]
        slots[rows, at] = np.add(*both("used", share, other))[rows]
    out["low"], out["high"] = box[:, 0], box[:, 1]
    out["left"], out["right"] = left, right
    out["shares"], out["units"], out["counts"] = shares, units, counts
    out["leaves"], out["parent"] = a.leaves + b.leaves, ROOT_PARENT
    shift = np.array([0, 8, 16])
    out["stack"] = (stack << shift).sum(axis=1) | levels << 24
    out["depth"] = (depth << shift).sum(axis=1) | slots[:, 1] << 24 | slots[:, 2] << 28
    return out
