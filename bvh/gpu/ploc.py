"""PLOC on the GPU: boxes to a binary tree, all in one compute pass.

Boxes in Morton order, then a fixed number of dispatches that merge clusters; how many are left is
known on the GPU alone. Nothing is read back between them, and no dispatch reads what another
workgroup writes in it. Scratch is allocated once for a capacity. The method is described in
`bvh/gpu/ploc_stages.py`; `bvh.builders.ploc` is the same build made of the stages' twins.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from bvh.builders.ploc import PlocConfig
from bvh.gpu.build_records import group_count, sweep_groups
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
from bvh.gpu.tree_builder import TreeBuilder
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.stage import Stage


class GpuPloc(TreeBuilder):
    """Builds over up to `capacity` boxes. LimitError where a buffer would not fit."""

    def __init__(self, device: Device, capacity: int, config: PlocConfig | None = None) -> None:
        if capacity > MOST_PRIMITIVES:
            raise LimitError(f"{capacity:,} boxes, one build takes {MOST_PRIMITIVES:,}")
        self.config = config or PlocConfig()
        chunks = max(chunk_count(capacity), 1)
        sizes = {
            "counts": 4 * (1 + chunks),
            "next_counts": 4 * (1 + chunks),
            "clusters": CLUSTER.size * CHUNK * chunks,
            "next_clusters": CLUSTER.size * CHUNK * chunks,
            "zero_parent": 4,
        }
        super().__init__(device, capacity, "ploc", sizes)
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
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        super().set_count(count)
        self.sorted.set_count(count)

    def own_phases(self) -> dict[str, Callable[[Any], None]]:
        resources = {**self.resources, **self.inputs}
        return {**self.sorted.phases(self.inputs), "merge": partial(self._encode_merge, resources)}

    def _encode_merge(self, resources: dict[str, Any], scope: Any) -> None:
        self.leaves.dispatch(scope, resources, max(group_count(self.count), 1))
        groups = max(min(chunk_count(self.count), sweep_groups(self.device)), 1)
        for forced in dispatches(self.count):
            resources = {**resources, "parameters": self._parameters[forced]}
            self.rounds.dispatch(scope, resources, groups)
            for name in ("counts", "clusters"):
                old, new = resources[name], resources[f"next_{name}"]
                resources.update({name: new, f"next_{name}": old})
