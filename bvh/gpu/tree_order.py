"""Order in a binary tree of any numbering: who is above, below and beside each inner node.

Parents come from the children; one walk to the root a node gives its depth and the turns on the
way; a stable counting sort by depth gives the nodes of each level. Subtrees are summed up from the
deepest level: leaf counts, heights, and the costs from which `bvh.gpu.collapse` cuts the tree into
wide nodes. A second walk adds up the leaves to the left.

Walks read what earlier dispatches wrote and nothing else, and are as long as the tree is deep, at
most MAX_DEPTH steps: one dispatch instead of one a level. Sums from below need the levels, but a
dispatch may do several: what lies below a node within a strip of levels is one treelet, which a few
lanes of one workgroup do by themselves. Wider strips make fewer dispatches and idler lanes.

Costs and shares are those of the dynamic programme of Ylitie, Karras and Laine 2017 ("Efficient
incoherent ray traversal on GPUs through compressed wide BVHs", section 3.1), for four slots.

    level_nodes   u32 a node: sorted by depth, then by index
    level_starts  u32 [LEVELS]: where each level begins in them; the number of nodes past the last
    parents       u32 a node: the parent, RIGHT_CHILD set for its right child; NO_PARENT at the root
    paths         two u32 a node: turns from the root on, lowest bit first, 1 for right; 16 bits of
                  the second word, above them the depth in steps
    leaf_counts   two u32 a node: leaves below its left and its right child
    heights       u32 a node: levels of inner nodes below it, itself included
    shares        u32 a node: slots that go left of four (2 bits), three (2), two (1); 0: not opened
    ranges        two u32 a node: first and last leaf in depth-first order
    leaf_order    u32 a leaf: the primitive at each place of depth-first order
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import group_count, sweep_groups
from bvh.gpu.tree_order_records import DEPTH_SHIFT, LEVELS, NO_PARENT, RIGHT_CHILD
from bvh.tree import EMPTY, MAX_DEPTH
from engine.gpu.device import Device
from engine.gpu.primitives.radix_sort import place_digits
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

LONGEST_SIDE = np.float32(1e15)  # longer sides count as this long, so that no sum overflows
GPU_STRIP = 4  # levels a dispatch; CPU drivers pay for idle lanes, and do one
MOST_STRIP = 8  # 128 lanes a treelet
LEVELS_A_GROUP = 2  # of place_digits: 256 nodes are a tile, so there are many of them


def node_count(state: NDArray[Any]) -> int:
    """Inner nodes of the tree; the root of no or one leaf counts."""
    return max(int(state["kept"][0]) - 1, 1)


def node_areas(bounds: F32) -> F32:
    """Half the surface area of boxes `[n, 2, 3]` as node_area.wgsl computes it."""
    with np.errstate(over="ignore", invalid="ignore"):
        side = np.clip(bounds[:, 1] - bounds[:, 0], np.float32(0), LONGEST_SIDE)
    x, y, z = side[:, 0], side[:, 1], side[:, 2]
    return np.asarray(x * y + y * z + z * x)


def tree_parents(state: NDArray[Any], children: I32, parents: U32, totals: U32) -> None:
    """Twin of tree_parents.wgsl; clears the first row of `totals` for node_paths."""
    nodes = node_count(state)
    totals[:256] = 0
    parents[0] = NO_PARENT
    for side, bit in ((0, 0), (1, RIGHT_CHILD)):
        child = children[side : 2 * nodes : 2]
        inner = np.flatnonzero(child >= 0)
        parents[child[inner]] = inner.astype(np.uint32) | np.uint32(bit)


def node_paths(
    parameters: U32, state: NDArray[Any], parents: U32, paths: U32, counts: U32, totals: U32
) -> None:
    """Twin of node_paths.wgsl: `paths`, and how many nodes of each level a tile of 256 holds, as
    `counts[tile * LEVELS + level]`. `parameters` are nodes at most, 0, 0, tiles."""
    nodes, tiles = min(int(parameters[0]), node_count(state)), int(parameters[3])
    link = parents[:nodes].copy()
    turns, depth = np.zeros(nodes, np.uint64), np.zeros(nodes, np.uint32)
    for _ in range(MAX_DEPTH):
        up = link != NO_PARENT
        turns[up] = turns[up] << np.uint64(1) | (link[up] >> np.uint32(31))
        depth += up
        link[up] = parents[link[up] & np.uint32(RIGHT_CHILD - 1)]
    out = paths[: 2 * nodes].reshape(-1, 2)
    out[:, 0] = turns & np.uint64(0xFFFFFFFF)
    out[:, 1] = (turns >> np.uint64(32)).astype(np.uint32) | depth << np.uint32(DEPTH_SHIFT)
    cell = np.arange(nodes) // 256 * LEVELS + depth.astype(np.int64)
    counts[: LEVELS * tiles] = np.bincount(cell, minlength=LEVELS * tiles)
    totals[:LEVELS] += np.bincount(depth, minlength=LEVELS).astype(np.uint32)


def place_levels(parameters: U32, totals: U32, counts: U32) -> None:
    """Twin of place_digits.wgsl over the digits that are levels: `counts` become where each tile's
    share of each level begins."""
    place_digits(parameters, totals, counts, LEVELS)


def level_nodes(
    parameters: U32,
    state: NDArray[Any],
    paths: U32,
    offsets: U32,
    level_nodes: U32,
    level_starts: U32,
) -> None:
    """Twin of level_nodes.wgsl: nodes to where their tile's share of their level begins."""
    nodes = min(int(parameters[0]), node_count(state))
    depth = paths[1 : 2 * nodes : 2] >> np.uint32(DEPTH_SHIFT)
    level_nodes[:nodes] = np.argsort(depth, kind="stable")
    level_starts[:LEVELS] = offsets[:LEVELS]


def subtrees(
    parameters: U32,
    level_starts: U32,
    level_nodes: U32,
    children: I32,
    bounds: F32,
    leaf_counts: U32,
    heights: U32,
    shares: U32,
    costs: F32,
) -> None:
    """Twin of subtrees.wgsl: a strip of levels. `parameters` are its first level, its levels, 0, 0.
    Costs are only kept for the first level, the one that the strip above reads."""
    first_level, levels = int(parameters[0]), int(parameters[1])
    pairs, counts = children.reshape(-1, 2), leaf_counts.reshape(-1, 2)
    strip_costs = costs.reshape(-1, 3).copy()
    for level in range(min(first_level + levels, LEVELS - 1) - 1, first_level - 1, -1):
        rows = level_nodes[level_starts[level] : level_starts[level + 1]]
        below, at = pairs[rows], np.maximum(pairs[rows], 0)
        inner = below >= 0
        counts[rows] = np.where(inner, counts[at].sum(axis=2), below != EMPTY)
        heights[rows] = 1 + np.where(inner, heights[at], 0).max(axis=1)
        cost = np.where(inner[:, :, None], strip_costs[at], np.float32(0))
        left, right = cost[:, 0], cost[:, 1]
        opened = {}
        for slots in (2, 3, 4):
            options = [left[:, i - 1] + right[:, slots - i - 1] for i in range(1, slots)]
            share = np.argmin(options, axis=0)  # the first of equals
            opened[slots] = np.min(options, axis=0), share.astype(np.uint32) + 1
        area = node_areas(bounds.reshape(-1)[: 6 * len(pairs)].reshape(-1, 2, 3)[rows])
        own = area + opened[4][0]
        packed = opened[4][1]
        strip_costs[rows, 0] = own
        for slots, shift in ((3, 2), (2, 4)):
            least, share = opened[slots]
            strip_costs[rows, slots - 1] = np.minimum(least, own)
            packed = packed | np.where(least < own, share, 0).astype(np.uint32) << np.uint32(shift)
        shares[rows] = packed
    roots = level_nodes[level_starts[first_level] : level_starts[first_level + 1]]
    costs.reshape(-1, 3)[roots] = strip_costs[roots]


def leaf_ranges(
    state: NDArray[Any],
    children: I32,
    parents: U32,
    leaf_counts: U32,
    ranges: U32,
    leaf_order: U32,
) -> None:
    """Twin of leaf_ranges.wgsl."""
    nodes = node_count(state)
    first, link = np.zeros(nodes, np.uint32), parents[:nodes].copy()
    for _ in range(MAX_DEPTH):
        above = link & np.uint32(RIGHT_CHILD - 1)
        right = (link != above) & (link != NO_PARENT)
        first[right] += leaf_counts[2 * above[right]]
        up = link != NO_PARENT
        link[up] = parents[above[up]]
    left, right_leaves = leaf_counts[: 2 * nodes : 2], leaf_counts[1 : 2 * nodes : 2]
    out = ranges[: 2 * nodes].reshape(-1, 2)
    out[:, 0] = first
    out[:, 1] = first + np.maximum(left + right_leaves, 1) - np.uint32(1)
    for side, start in ((0, first), (1, first + left)):
        child = children[side : 2 * nodes : 2]
        leaf = (child < 0) & (child != EMPTY)
        leaf_order[start[leaf]] = ~child[leaf]


TWINS: dict[str, Callable[..., None]] = {
    "tree_parents": tree_parents,
    "node_paths": node_paths,
    "level_nodes": level_nodes,
    "subtrees": subtrees,
    "leaf_ranges": leaf_ranges,
}


class TreeOrder:
    """Orders trees of up to `capacity` leaves that lie in a builder's buffers: `state`, `children`
    and, for the costs alone, `bounds`. `strip` is the number of levels a dispatch of the sweep
    from below does, 1 to 8. LimitError where a buffer would not fit."""

    def __init__(self, device: Device, capacity: int, strip: int | None = None) -> None:
        self.device = device
        self.strip = strip or (1 if device.info.is_cpu else GPU_STRIP)
        if not 1 <= self.strip <= MOST_STRIP:
            raise ValueError(f"a strip of {self.strip} levels; 1 to {MOST_STRIP} are possible")
        self.nodes = nodes = max(capacity - 1, 1)
        self._tiles = tiles = group_count(nodes)
        sizes = {
            "level_nodes": 4 * nodes,
            "level_starts": 4 * LEVELS,
            "parents": 4 * nodes,
            "paths": 8 * nodes,
            "leaf_counts": 8 * nodes,
            "heights": 4 * nodes,
            "shares": 4 * nodes,
            "ranges": 8 * nodes,
            "leaf_order": 4 * capacity,
        }
        scratch = {"costs": 12 * nodes, "counts": 4 * LEVELS * tiles, "totals": 4 * 2 * 256}
        for name, size in (sizes | scratch).items():
            device.check_binding(f"order/{name}", size)
        self.buffers = {name: device.buffer(f"order/{name}", size) for name, size in sizes.items()}
        self._scratch = {
            name: device.buffer(f"order/{name}", size) for name, size in scratch.items()
        }
        self._scratch["offsets"] = self._scratch["counts"]
        self._tiled = self._parameters(nodes, 0, 0, tiles)
        self._strips = [
            self._parameters(level, self.strip, 0, 0)
            for level in reversed(range(0, MAX_DEPTH, self.strip))
        ]
        self.stages = {
            name: Stage(device, f"order/{name}", f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
            for name, twin in TWINS.items()
        }
        folder = "engine/gpu/primitives/shaders"
        self.stages["place_digits"] = Stage(
            device,
            "order/place_digits",
            f"{folder}/place_digits.wgsl",
            constants={"DIGITS": LEVELS, "OWN": LEVELS_A_GROUP},
            twin=place_levels,
        )

    def _parameters(self, *words: int) -> Any:
        return self.device.upload("parameters", np.array(words, np.uint32), "UNIFORM|COPY_DST")

    def encode_levels(self, scope: Any, tree_buffers: dict[str, Any]) -> None:
        """Parents, paths and levels alone, from `state` and `children`."""
        resources = {**tree_buffers, **self.buffers, **self._scratch, "parameters": self._tiled}
        self.stages["tree_parents"].dispatch(scope, resources, self._tiles)
        self.stages["node_paths"].dispatch(scope, resources, self._tiles)
        self.stages["place_digits"].dispatch(scope, resources, LEVELS // LEVELS_A_GROUP)
        self.stages["level_nodes"].dispatch(scope, resources, self._tiles)

    def encode_subtrees(self, scope: Any, tree_buffers: dict[str, Any]) -> None:
        """Leaf counts, heights and shares, after the levels."""
        resources = {**tree_buffers, **self.buffers, **self._scratch}
        for parameters in self._strips:
            self.stages["subtrees"].dispatch(
                scope, {**resources, "parameters": parameters}, sweep_groups(self.device)
            )

    def encode_ranges(self, scope: Any, tree_buffers: dict[str, Any]) -> None:
        """Leaf ranges and the leaves' order, after the subtrees."""
        resources = {**tree_buffers, **self.buffers}
        self.stages["leaf_ranges"].dispatch(scope, resources, self._tiles)

    def encode(self, scope: Any, tree_buffers: dict[str, Any], *, ranges: bool = True) -> None:
        """All of `buffers`, within the pass `scope`, after the build that fills `tree_buffers`;
        without `ranges` and `leaf_order` where a collapse, which fills them too, comes next."""
        self.encode_levels(scope, tree_buffers)
        self.encode_subtrees(scope, tree_buffers)
        if ranges:
            self.encode_ranges(scope, tree_buffers)
