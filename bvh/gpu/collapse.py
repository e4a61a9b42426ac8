"""Binary to four wide on the GPU: greedy by area, depth-first, within the traversal's stack.

A wide node starts with the two children of its binary node and opens the inner child of largest
surface area, twice (as `bvh.transforms.collapse.collapse_greedy`, but in float32). It opens none
where a traversal could then need more than STACK_LIMIT entries: what waits on the way to it, its
slots, and one entry a level that may follow. How many may follow is taken from the deepest path
of the whole tree, which is all that is known without a pass from the leaves up.

One dispatch a level of the binary tree, `max_depth` of them: which nodes become wide is decided
from the root down, and a level reads only what dispatches before it wrote. Wide nodes then get
their place in the depth-first order by a scan over the binary tree's preorder.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import BUILD_PARAMETERS, LEFT_TURN, group_count, make_parameters
from bvh.tree import EMPTY, MAX_DEPTH, STACK_LIMIT, Tree
from engine.gpu.device import Device
from engine.gpu.primitives.scan import ExclusiveScan
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
U32 = NDArray[np.uint32]

WIDTH = 4
LONGEST_SIDE = np.float32(1e18)  # longer sides count as this long, so that no area overflows


def _node_count(state: NDArray[Any]) -> int:
    return max(int(state["kept"][0]) - 1, 1)


def _areas(bounds: F32) -> F32:
    side = np.minimum(bounds[:, 1] - bounds[:, 0], LONGEST_SIDE)
    x, y, z = side[:, 0], side[:, 1], side[:, 2]
    return np.asarray(x * y + y * z + z * x)


def collapse(
    parameters: NDArray[Any],
    state: NDArray[Any],
    deepest: U32,
    children: I32,
    paths: U32,
    bounds: F32,
    marks: U32,
    slots: I32,
) -> None:
    """Twin of collapse.wgsl. Level 0 marks the root alone; level k > 0 gives `slots` to the
    marked nodes k - 1 steps below the root and marks those that stand in them. A mark is one more
    than the entries that wait on the way to the node."""
    nodes, level = _node_count(state), int(parameters["level"][0])
    if level == 0:
        marks[:nodes] = 0
        marks[0] = 1
        return
    step_count = paths[1 : 2 * nodes : 2] & np.uint32(LEFT_TURN - 1)
    rows = np.flatnonzero((step_count == level - 1) & (marks[:nodes] > 0))
    pairs = children[: 2 * nodes].reshape(-1, 2)
    with np.errstate(over="ignore"):
        area = _areas(bounds[: 6 * nodes].reshape(-1, 2, 3))
    chosen = np.full((len(rows), WIDTH), EMPTY, np.int32)
    chosen[:, :2] = pairs[rows]
    unopened = chosen.copy()
    for used in (2, 3):
        size = np.where(chosen >= 0, area[np.maximum(chosen, 0)], np.float32(-1))
        pick = np.argmax(size, axis=1)  # the first of equals
        at = np.flatnonzero(size.max(axis=1) >= 0)
        pick = pick[at]
        opened = pairs[chosen[at, pick]]
        for slot in range(used, 1, -1):
            behind = pick < slot - 1
            chosen[at[behind], slot] = chosen[at[behind], slot - 1]
        chosen[at, pick] = opened[:, 0]
        chosen[at, pick + 1] = opened[:, 1]
    max_depth = int(parameters["max_depth"][0])
    last_step = int(deepest[0]) if int(deepest[0]) < max_depth else int(deepest[1])
    waiting = marks[rows].astype(np.int64) - 1
    follow = np.where(chosen >= 0, last_step + 1 - step_count[np.maximum(chosen, 0)], 0).max(axis=1)
    entries = waiting + (chosen != EMPTY).sum(axis=1) + follow
    tight = entries > STACK_LIMIT
    chosen[tight] = unopened[tight]
    slots[: 4 * nodes].reshape(-1, WIDTH)[rows] = chosen
    left = np.broadcast_to((waiting + (chosen != EMPTY).sum(axis=1))[:, None], chosen.shape)
    inner = chosen >= 0
    marks[chosen[inner]] = left[inner]


def mark_preorder(state: NDArray[Any], ranges: U32, paths: U32, marks: U32, order: U32) -> None:
    """Twin of mark_preorder.wgsl: `order[place in preorder]` is 1 for nodes that became wide; 0
    past the last node, as many as were given."""
    nodes = _node_count(state)
    order[:] = 0
    order[_preorder(nodes, ranges, paths)] = marks[:nodes] > 0


def _preorder(nodes: int, ranges: U32, paths: U32) -> U32:
    return np.asarray(ranges[: 2 * nodes : 2] + paths[1 : 2 * nodes : 2] // np.uint32(LEFT_TURN))


def place_wide(
    state: NDArray[Any],
    ranges: U32,
    paths: U32,
    marks: U32,
    order: U32,
    slots: I32,
    places: U32,
    wide_children: I32,
) -> None:
    """Twin of place_wide.wgsl: the wide nodes in depth-first order (`order` is scanned by now):
    their children, and in `places` the binary node that each stands for."""
    nodes = _node_count(state)
    rank = order[_preorder(nodes, ranges, paths)].astype(np.int32)
    rows = np.flatnonzero(marks[:nodes] > 0)
    mine = slots[: 4 * nodes].reshape(-1, WIDTH)[rows]
    wide_children[: 4 * nodes].reshape(-1, WIDTH)[rank[rows]] = np.where(
        mine >= 0, rank[np.maximum(mine, 0)], mine
    )
    places[rank[rows]] = rows


TWINS: dict[str, Callable[..., None]] = {
    "collapse": collapse,
    "mark_preorder": mark_preorder,
    "place_wide": place_wide,
}


class GpuCollapse:
    """Collapses binary trees of up to `capacity` leaves that lie in another build's buffers:
    state, deepest, children, ranges, paths and bounds, as `GpuLbvh.tree_buffers` gives them."""

    def __init__(self, device: Device, capacity: int, max_depth: int = MAX_DEPTH) -> None:
        self.device = device
        self.max_depth = max_depth
        nodes = max(capacity - 1, 1)
        self.nodes = nodes
        sizes = {"marks": 4, "slots": 16, "order": 4, "places": 4, "wide_children": 16}
        for name, size in sizes.items():
            device.check_binding(f"collapse/{name}", size * nodes)
        self.resources = {
            name: device.buffer(f"collapse/{name}", size * nodes) for name, size in sizes.items()
        }
        self._levels = []
        for level in range(max_depth + 1):
            buffer = device.buffer("parameters", BUILD_PARAMETERS.size, "UNIFORM|COPY_DST")
            device.write(buffer, make_parameters(capacity, 1, 0, max_depth, level=level))
            self._levels.append(buffer)
        self._scan = ExclusiveScan(device, nodes, with_total=True)
        self.stages = {
            name: Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
            for name, twin in TWINS.items()
        }

    def encode(self, scope: Any, tree_buffers: dict[str, Any]) -> None:
        """Within the pass `scope`, after the build that fills `tree_buffers`."""
        resources = {**tree_buffers, **self.resources}
        groups = group_count(self.nodes)
        for parameters in self._levels:
            self.stages["collapse"].dispatch(scope, {**resources, "parameters": parameters}, groups)
        self.stages["mark_preorder"].dispatch(scope, resources, groups)
        self._scan.encode(scope, self.resources["order"])
        self.stages["place_wide"].dispatch(scope, resources, groups)

    def read(self, tree_buffers: dict[str, Any]) -> Tree:
        """The four-wide tree of the last collapse; of at least one leaf."""
        count = int(self.device.read(self._scan.total, count=1)[0])
        wide = self.device.read(self.resources["wide_children"], np.int32, count=WIDTH * count)
        places = self.device.read(self.resources["places"], count=count)
        bounds = self.device.read(tree_buffers["bounds"], np.float32).reshape(-1)
        boxes = bounds[: 6 * (len(bounds) // 6)].reshape(-1, 2, 3)
        return Tree(np.asarray(wide).reshape(-1, WIDTH), boxes[places])
