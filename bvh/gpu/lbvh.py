"""LBVH on the GPU: boxes to a binary tree, all in one compute pass.

Boxes in Morton order, radix tree over their codes, bounds; nothing is read back between them, and
every dispatch's size follows from a bound on the number of boxes. Scratch is allocated once for a
capacity. `bvh.builders.lbvh` is the same build made of the stages' twins.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bvh.builders.lbvh import LbvhConfig
from bvh.gpu.build_records import (
    BUILD_PARAMETERS,
    BUILD_STATE,
    box_buffers,
    group_count,
    make_parameters,
    write_boxes,
)
from bvh.gpu.hierarchy import hierarchy
from bvh.gpu.range_bounds import box_pyramid, pyramid_dispatches, pyramid_sizes, range_bounds
from bvh.gpu.sorted_boxes import SortedBoxes
from bvh.gpu.tree_depth import tree_depth
from bvh.tree import EMPTY, Bounds, Tree, empty_bounds
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.stage import Stage, submit_pass

TWINS: dict[str, Callable[..., None]] = {
    "hierarchy": hierarchy,
    "tree_depth": tree_depth,
    "box_pyramid": box_pyramid,
    "range_bounds": range_bounds,
}
MOST_PRIMITIVES = 1 << 30  # node indices are signed and a search doubles them


class GpuLbvh:
    """Builds over up to `capacity` boxes. LimitError where a buffer would not fit."""

    def __init__(self, device: Device, capacity: int, config: LbvhConfig | None = None) -> None:
        if capacity > MOST_PRIMITIVES:
            raise LimitError(f"{capacity:,} boxes, one build takes {MOST_PRIMITIVES:,}")
        self.device = device
        self.capacity = capacity
        self.config = config or LbvhConfig()
        nodes = max(capacity - 1, 1)
        sizes = {
            "children": 8 * nodes,
            "ranges": 8 * nodes,
            "parents": 4 * nodes,
            "deepest": 8,
            "pyramid": 24 * sum(pyramid_sizes(capacity)),
            "bounds": 24 * nodes,
        }
        for name, size in sizes.items():
            device.check_binding(f"lbvh/{name}", size)
        self.resources = {name: device.buffer(f"lbvh/{name}", size) for name, size in sizes.items()}
        config = self.config
        self.sorted = SortedBoxes(
            device, capacity, config.grid_bits, config.size_bits, config.max_depth
        )
        self.resources.update(
            keys=self.sorted.keys, payload=self.sorted.payload, parameters=self.sorted.parameters
        )
        self._pyramid_parameters = [
            device.buffer("lbvh/parameters", BUILD_PARAMETERS.size, "UNIFORM|COPY_DST")
            for _ in pyramid_dispatches(capacity)
        ]
        self._again = device.buffer("lbvh/parameters", BUILD_PARAMETERS.size, "UNIFORM|COPY_DST")
        self.stages = {
            name: Stage(device, f"lbvh/{name}", f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
            for name, twin in TWINS.items()
        }
        self._inputs: dict[str, Any] = {}
        self._own: dict[str, Any] | None = None
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """A bound on the boxes from now on; at most `capacity`, else ValueError."""
        self.sorted.set_count(count)
        self.count = count
        config = self.config
        records = [(b, first, 0) for b, (first, _) in self._pyramid()] + [(self._again, 0, 1)]
        for buffer, first, attempt in records:
            record = make_parameters(
                count,
                config.grid_bits,
                config.size_bits,
                config.max_depth,
                level=first,
                attempt=attempt,
            )
            self.device.write(buffer, record)

    def _pyramid(self) -> list[tuple[Any, tuple[int, int]]]:
        """Parameters, first level and its boxes of each dispatch of the pyramid."""
        return list(zip(self._pyramid_parameters, pyramid_dispatches(self.count), strict=False))

    def phases(self, inputs: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """What a build over `inputs` (state and boxes) encodes, in order, each into a pass."""
        self._inputs = {"state": inputs["state"], "boxes": inputs["boxes"]}
        resources = {**self.resources, **self._inputs}
        return {
            **self.sorted.phases(inputs),
            "hierarchy": partial(self._encode_hierarchy, resources),
            "bounds": partial(self._encode_bounds, resources),
        }

    def _encode_hierarchy(self, resources: dict[str, Any], scope: Any) -> None:
        nodes = max(self.count - 1, 1)
        for parameters in (self.resources["parameters"], self._again):
            resources = {**resources, "parameters": parameters}
            self.stages["hierarchy"].dispatch(scope, resources, group_count(nodes))
            self.stages["tree_depth"].dispatch(scope, resources, group_count(nodes))

    def _encode_bounds(self, resources: dict[str, Any], scope: Any) -> None:
        for parameters, (_, items) in self._pyramid():
            self.stages["box_pyramid"].dispatch(
                scope, {**resources, "parameters": parameters}, group_count(items)
            )
        nodes = max(self.count - 1, 1)
        self.stages["range_bounds"].dispatch(scope, resources, group_count(nodes))

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
        """Tree over finite boxes `[n, 2, 3]`, `bvh.builders.lbvh.build`'s; in a submission of its
        own."""
        self.set_count(len(bounds))
        if self._own is None:
            self._own = box_buffers(self.device, self.capacity)
        write_boxes(self.device, self._own, bounds)
        inputs = self._own
        submit_pass(self.device, lambda scope: self.encode(scope, inputs), label="lbvh")
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
