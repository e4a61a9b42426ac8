"""Binary to four wide on the GPU, depth-first and within the traversal's stack.

What a wide node opens is decided as in `bvh.transforms.collapse`, but in float32: by the least
summed area of wide nodes ("best": the shares that `bvh.gpu.tree_order` computes from below) or the
inner child of largest area, twice ("greedy"). It depends on the tree below alone, except for the
stack: where what waits on the way to a node, its slots and one entry a level of the tallest of
them exceed STACK_LIMIT, the tallest children are opened instead, and else none. So every node's
shapes, the wanted one and the one by height, come first, for all nodes at once; then every node
walks down from the root to itself and sees which nodes on its path are wide, itself included, with
what waits there, and how many leaves are to its left. No node needs a result of another one's walk:
one dispatch whatever the depth.

Wide nodes get their place in depth-first order by a scan over the binary tree's preorder.

    wide_children  four i32 a wide node: wide node (>= 0), ~primitive or EMPTY, left to right
    places         u32 a wide node: the binary node that it stands for, whose bounds are its own
    wide_summary   u32: wide nodes, levels of them, most stack entries
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import group_count
from bvh.gpu.tree_order import node_areas, node_count
from bvh.gpu.tree_order_records import (
    DEPTH_SHIFT,
    ENTRY_BITS,
    MARK_LEVEL_SHIFT,
    MARK_MASK_SHIFT,
    MARK_WAITING_SHIFT,
    MASK_BITS,
)
from bvh.tree import EMPTY, STACK_LIMIT, Tree, leaf_slots
from engine.gpu.device import Device
from engine.gpu.primitives.scan import ExclusiveScan
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

WIDTH = 4
MODES = ("best", "greedy")
_MASK = (1 << MASK_BITS) - 1
_ENTRIES = (1 << ENTRY_BITS) - 1


class _Slots:
    """Slots of every wide node there could be, their codes, and the mask of what was opened."""

    def __init__(self, pairs: I32, rows: I64) -> None:
        self.pairs = pairs
        self.child = np.full((len(rows), WIDTH), EMPTY, np.int32)
        self.child[:, :2] = pairs[rows]
        self.code = np.broadcast_to(np.array([2, 3, 8, 8]), self.child.shape).copy()
        self.mask = np.zeros(len(rows), np.uint32)

    def open(self, rows: I64, place: I64) -> None:
        """Replaces the inner child in `place` by its two children."""
        code = self.code[rows, place]
        self.mask[rows] |= (1 << (code - 2)).astype(np.uint32)
        pair = self.pairs[self.child[rows, place]]
        for slot in range(WIDTH - 1, 1, -1):
            behind = place < slot - 1
            for array in (self.child, self.code):
                array[rows[behind], slot] = array[rows[behind], slot - 1]
        for side in (0, 1):
            self.child[rows, place + side] = pair[:, side]
            self.code[rows, place + side] = 2 * code + side

    def open_largest(self, key: NDArray[Any]) -> None:
        """Opens the inner child of largest key, the first of equals."""
        size = np.where(self.child >= 0, key[np.maximum(self.child, 0)].astype(np.float32), -1)
        rows = np.flatnonzero(size.max(axis=1, initial=-1) >= 0)
        self.open(rows, np.argmax(size[rows], axis=1))

    def open_best(self, shares: U32, rows: I64) -> None:
        """Opens what the dynamic programme's shares say."""
        left = (shares[rows] & np.uint32(3)).astype(np.int64)
        width = np.zeros(self.child.shape, np.int64)
        width[:, 0], width[:, 1] = left, WIDTH - left
        for _ in range(WIDTH - 2):
            of_child = shares[np.maximum(self.child, 0)].astype(np.int64)
            split = np.where(width == 3, of_child >> 2 & 3, of_child >> 4 & 3)
            split = np.where((self.child >= 0) & (width > 1), split, 0)
            at = np.flatnonzero(split.max(axis=1, initial=0) > 0)
            place = np.argmax(split[at] > 0, axis=1)
            self.open(at, place)
            split, whole = split[at, place], width[at, place]
            for slot in range(WIDTH - 1, 1, -1):
                behind = place < slot - 1
                width[at[behind], slot] = width[at[behind], slot - 1]
            width[at, place], width[at, place + 1] = split, whole - split

    def open_mask(self, mask: U32) -> None:
        """Opens what `mask` says."""
        for _ in range(WIDTH - 2):
            wanted = mask[:, None] >> (self.code - 2) & 1
            rows = np.flatnonzero(wanted.any(axis=1))
            self.open(rows, np.argmax(wanted[rows], axis=1))

    def entries(self, heights: U32) -> U32:
        tallest = np.where(self.child >= 0, heights[np.maximum(self.child, 0)], 0).max(axis=1)
        return np.asarray(2 + np.bitwise_count(self.mask) + tallest, np.uint32)


def wide_shapes(
    parameters: U32,
    state: NDArray[Any],
    children: I32,
    bounds: F32,
    heights: U32,
    shares: U32,
    leaf_counts: U32,
    steps: I32,
    wide_summary: U32,
    *,
    greedy: bool,
) -> None:
    """Twin of wide_shapes.wgsl: all that a walk needs of a node, in one word of four: children,
    leaves on the left, and its shapes: the mask that is wanted, the mask by height, the entries
    that each may need. Clears `wide_summary`."""
    nodes = node_count(state)
    rows = np.arange(nodes)
    pairs = children[: 2 * nodes].reshape(-1, 2)
    wanted, tallest = _Slots(pairs, rows), _Slots(pairs, rows)
    if greedy:
        area = node_areas(bounds[: 6 * nodes].reshape(-1, 2, 3))
        wanted.open_largest(area)
        wanted.open_largest(area)
    else:
        wanted.open_best(shares, rows)
    tallest.open_largest(heights)
    tallest.open_largest(heights)
    wide_summary[:4] = 0
    shift = 2 * MASK_BITS
    out = steps[: 4 * nodes].reshape(-1, 4)
    out[:, :2] = pairs
    out[:, 2] = leaf_counts[: 2 * nodes : 2]
    out[:, 3] = (
        wanted.mask
        | tallest.mask << np.uint32(MASK_BITS)
        | wanted.entries(heights) << np.uint32(shift)
        | tallest.entries(heights) << np.uint32(shift + ENTRY_BITS)
    )


def _fitting_mask(shape: U32, waiting: U32) -> U32:
    field = shape.astype(np.int64)
    wanted = waiting + (field >> 2 * MASK_BITS & _ENTRIES) <= STACK_LIMIT
    by_height = waiting + (field >> 2 * MASK_BITS + ENTRY_BITS & _ENTRIES) <= STACK_LIMIT
    mask = np.where(wanted, field & _MASK, np.where(by_height, field >> MASK_BITS & _MASK, 0))
    return mask.astype(np.uint32)


def wide_marks(
    state: NDArray[Any],
    paths: U32,
    steps: I32,
    leaf_counts: U32,
    ranges: U32,
    leaf_order: U32,
    marks: U32,
    order: U32,
) -> None:
    """Twin of wide_marks.wgsl: first and last leaf, mark (0 where a node is not wide) and preorder
    place of every inner node; `order[place]` is 1 for wide nodes."""
    nodes = node_count(state)
    path = paths[: 2 * nodes].reshape(-1, 2)
    depth = (path[:, 1] >> np.uint32(DEPTH_SHIFT)).astype(np.int64)
    turns = path[:, 0].astype(np.int64) | (path[:, 1].astype(np.int64) & 0xFFFF) << 32
    of_node = steps[: 4 * nodes].reshape(-1, 4)
    shapes = of_node[:, 3].astype(np.uint32)
    at, code = np.zeros(nodes, np.int64), np.ones(nodes, np.int64)
    first, waiting = np.zeros((2, nodes), np.uint32)
    level = np.ones(nodes, np.uint32)
    mask = _fitting_mask(np.full(nodes, shapes[0]), waiting)
    for step in range(int(depth.max())):
        on = np.flatnonzero(step < depth)
        right = turns[on] >> step & 1
        first[on] += np.where(right, of_node[at[on], 2], 0).astype(np.uint32)
        at[on] = of_node[at[on], right]
        code[on] = 2 * code[on] + right
        wide = on[mask[on] >> (code[on] - 2) & 1 == 0]
        waiting[wide] += 1 + np.bitwise_count(mask[wide])
        level[wide] += 1
        mask[wide] = _fitting_mask(shapes[at[wide]], waiting[wide])
        code[wide] = 1
    left = of_node[:, 2].astype(np.uint32)
    leaves = np.maximum(left + leaf_counts[1 : 2 * nodes : 2], np.uint32(1))
    ranges[: 2 * nodes].reshape(-1, 2)[:] = np.stack([first, first + leaves - 1], axis=1)
    for side, start in ((0, first), (1, first + left)):
        leaf = leaf_slots(of_node[:, side])
        leaf_order[start[leaf]] = ~of_node[leaf, side]
    place = first + (depth - np.bitwise_count(turns)).astype(np.uint32)
    out = marks[: 2 * nodes].reshape(-1, 2)
    mark = (
        np.uint32(1)
        | mask << np.uint32(MARK_MASK_SHIFT)
        | waiting << np.uint32(MARK_WAITING_SHIFT)
        | level << np.uint32(MARK_LEVEL_SHIFT)
    )
    out[:, 0] = np.where(code == 1, mark, 0)
    out[:, 1] = place
    order[place] = code == 1


def place_wide(
    state: NDArray[Any],
    children: I32,
    marks: U32,
    order: U32,
    places: U32,
    wide_children: I32,
    wide_summary: U32,
) -> None:
    """Twin of place_wide.wgsl: the wide nodes in depth-first order (`order` is scanned by now)."""
    nodes = node_count(state)
    mark, place = marks[: 2 * nodes].reshape(-1, 2).T
    rows = np.flatnonzero(mark)
    mine = mark[rows]
    slots = _Slots(children[: 2 * nodes].reshape(-1, 2), rows)
    slots.open_mask(mine >> np.uint32(MARK_MASK_SHIFT) & np.uint32(_MASK))
    rank = order[place].astype(np.int32)
    wide_children[: WIDTH * nodes].reshape(-1, WIDTH)[rank[rows]] = np.where(
        slots.child >= 0, rank[np.maximum(slots.child, 0)], slots.child
    )
    places[rank[rows]] = rows
    waiting = mine >> np.uint32(MARK_WAITING_SHIFT) & np.uint32(255)
    wide_summary[0] = max(wide_summary[0], len(rows))
    wide_summary[1] = max(wide_summary[1], (mine >> np.uint32(MARK_LEVEL_SHIFT)).max())
    wide_summary[2] = max(wide_summary[2], (waiting + (slots.child != EMPTY).sum(axis=1)).max())


class GpuCollapse:
    """Collapses binary trees of up to `capacity` leaves that lie in a builder's buffers (`state`,
    `children`, `bounds`) and were ordered by a TreeOrder. `mode` is one of MODES, else ValueError.
    The result is in `buffers`: wide_children, places, wide_summary."""

    def __init__(self, device: Device, capacity: int, mode: str = "best") -> None:
        if mode not in MODES:
            raise ValueError(f"no collapse is named '{mode}'; there are {', '.join(MODES)}")
        self.device = device
        self.mode = mode
        self.nodes = nodes = max(capacity - 1, 1)
        sizes = {"places": 4 * nodes, "wide_children": 16 * nodes, "wide_summary": 16}
        scratch = {"steps": 16 * nodes, "marks": 8 * nodes, "order": 4 * nodes}
        for name, size in (sizes | scratch).items():
            device.check_binding(f"collapse/{name}", size)
        self.buffers = {
            name: device.buffer(f"collapse/{name}", size) for name, size in sizes.items()
        }
        self._scratch = {
            name: device.buffer(f"collapse/{name}", size) for name, size in scratch.items()
        }
        self._scratch["parameters"] = device.buffer("parameters", 16, "UNIFORM|COPY_DST")
        self._scan = ExclusiveScan(device, nodes)
        greedy = mode == "greedy"
        twins: dict[str, Callable[..., None]] = {
            "wide_shapes": partial(wide_shapes, greedy=greedy),
            "wide_marks": wide_marks,
            "place_wide": place_wide,
        }
        self.stages = {
            name: Stage(
                device,
                f"collapse/{name}",
                f"bvh/gpu/shaders/{name}.wgsl",
                constants={"GREEDY": greedy} if name == "wide_shapes" else None,
                twin=twin,
            )
            for name, twin in twins.items()
        }

    def encode(
        self, scope: Any, tree_buffers: dict[str, Any], order_buffers: dict[str, Any]
    ) -> None:
        """Within the pass `scope`, after `TreeOrder.encode` of the same tree. Fills `ranges` and
        `leaf_order` of `order_buffers` too, so that the order may leave them out."""
        resources = {**tree_buffers, **order_buffers, **self.buffers, **self._scratch}
        groups = group_count(self.nodes)
        self.stages["wide_shapes"].dispatch(scope, resources, groups)
        self.stages["wide_marks"].dispatch(scope, resources, groups)
        self._scan.encode(scope, self._scratch["order"])
        self.stages["place_wide"].dispatch(scope, resources, groups)

    def read(self, tree_buffers: dict[str, Any]) -> Tree:
        """The four-wide tree of the last collapse; of at least one leaf."""
        count = int(self.device.read(self.buffers["wide_summary"], count=1)[0])
        wide = self.device.read(self.buffers["wide_children"], np.int32, count=WIDTH * count)
        places = self.device.read(self.buffers["places"], count=count)
        bounds = self.device.read(tree_buffers["bounds"], np.float32).reshape(-1)
        boxes = bounds[: 6 * (len(bounds) // 6)].reshape(-1, 2, 3)
        return Tree(np.asarray(wide).reshape(-1, WIDTH), boxes[places])
