"""PLOC on the GPU: boxes to a binary tree, all in one compute pass.

Boxes in Morton order, then a fixed number of dispatches that merge clusters; how many are left is
known on the GPU alone. Nothing is read back between them, and no dispatch reads what another
workgroup writes in it. Scratch is allocated once for a capacity. The method is described in
`bvh/gpu/ploc_stages.py`; `bvh.builders.ploc` is the same build made of the stages' twins.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bvh.builders.ploc import PlocConfig
from bvh.gpu.build_records import (
    BUILD_STATE,
    box_buffers,
    group_count,
    sweep_groups,
    write_boxes,
)
from bvh.gpu.ploc_stages import (
    CHUNK,
    CLUSTER,
    MOST_PRIMITIVES,
    chunk_count,
    dispatches,
    make_parameters,
    ploc_leaves,
    ploc_rounds,
)
from bvh.gpu.sorted_boxes import SortedBoxes
from bvh.tree import EMPTY, Bounds, Tree, empty_bounds
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.stage import Stage, submit_pass


class GpuPloc:
    """Builds over up to `capacity` boxes. LimitError where a buffer would not fit."""

    def __init__(self, device: Device, capacity: int, config: PlocConfig | None = None) -> None:
        if capacity > MOST_PRIMITIVES:
            raise LimitError(f"{capacity:,} boxes, one build takes {MOST_PRIMITIVES:,}")
        self.device = device
        self.capacity = capacity
        self.config = config or PlocConfig()
        nodes = max(capacity - 1, 1)
        chunks = max(chunk_count(capacity), 1)
        sizes = {
            "counts": 4 * (1 + chunks),
            "next_counts": 4 * (1 + chunks),
            "clusters": CLUSTER.size * CHUNK * chunks,
            "next_clusters": CLUSTER.size * CHUNK * chunks,
            "zero_parent": 4,
            "children": 8 * nodes,
            "bounds": 24 * nodes,
        }
        for name, size in sizes.items():
            device.check_binding(f"ploc/{name}", size)
        self.resources = {name: device.buffer(f"ploc/{name}", size) for name, size in sizes.items()}
        self.sorted = SortedBoxes(device, capacity, self.config.grid_bits, self.config.size_bits)
        self.resources["payload"] = self.sorted.payload
        self._parameters = {
            forced: device.upload("ploc/parameters", make_parameters(forced), "UNIFORM|COPY_DST")
            for forced in (False, True)
        }
        folder, radius = "bvh/gpu/shaders", self.config.radius
        self.leaves = Stage(device, "ploc/leaves", f"{folder}/ploc_leaves.wgsl", twin=ploc_leaves)
        self.rounds = Stage(
            device,
            "ploc/rounds",
            f"{folder}/ploc_rounds.wgsl",
            constants={"RADIUS": radius},
            twin=partial(ploc_rounds, radius=radius),
        )
        self._inputs: dict[str, Any] = {}
        self._own: dict[str, Any] | None = None
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """A bound on the boxes from now on; at most `capacity`, else ValueError."""
        self.sorted.set_count(count)
        self.count = count

    def phases(self, inputs: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """What a build over `inputs` (state and boxes) encodes, in order, each into a pass."""
        self._inputs = {"state": inputs["state"], "boxes": inputs["boxes"]}
        resources = {**self.resources, **self._inputs}
        return {**self.sorted.phases(inputs), "merge": partial(self._encode_merge, resources)}

    def _encode_merge(self, resources: dict[str, Any], scope: Any) -> None:
        self.leaves.dispatch(scope, resources, max(group_count(self.count), 1))
        groups = max(min(chunk_count(self.count), sweep_groups(self.device)), 1)
        for forced in dispatches(self.count):
            resources = {**resources, "parameters": self._parameters[forced]}
            self.rounds.dispatch(scope, resources, groups)
            for name in ("counts", "clusters"):
                old, new = resources[name], resources[f"next_{name}"]
                resources.update({name: new, f"next_{name}": old})

    def encode(self, scope: Any, inputs: dict[str, Any]) -> None:
        """The whole build over `inputs` (state and boxes), within the pass `scope`."""
        for encode_phase in self.phases(inputs).values():
            encode_phase(scope)

    @property
    def tree_buffers(self) -> dict[str, Any]:
        """The last build's buffers, for stages that go on from it."""
        buffers = {name: self.resources[name] for name in ("children", "bounds")}
        return {**self._inputs, **buffers}

    def build_boxes(self, bounds: Bounds) -> Tree:
        """Tree over finite boxes `[n, 2, 3]`, `bvh.builders.ploc.build`'s; in a submission of its
        own."""
        self.set_count(len(bounds))
        if self._own is None:
            self._own = box_buffers(self.device, self.capacity)
        write_boxes(self.device, self._own, bounds)
        inputs = self._own
        submit_pass(self.device, lambda scope: self.encode(scope, inputs), label="ploc")
        return self.read()

    def read(self) -> Tree:
        """Reads the last build back."""
        state = self.device.read(self._inputs["state"], BUILD_STATE.dtype, count=1)[0]
        kept = int(state["kept"])
        if not kept:
            return Tree(np.full((1, 2), EMPTY, np.int32), empty_bounds(1))
        nodes = max(kept - 1, 1)
        children = self.device.read(self.resources["children"], np.int32, count=2 * nodes)
        bounds = self.device.read(self.resources["bounds"], np.float32, count=6 * nodes)
        return Tree(np.asarray(children).reshape(-1, 2), np.asarray(bounds).reshape(-1, 2, 3))
