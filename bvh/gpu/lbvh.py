"""LBVH on the GPU: boxes to a binary tree, all in one compute pass.

Boxes in Morton order, radix tree over their codes, bounds; nothing is read back between them, and
every dispatch's size follows from a bound on the number of boxes. Scratch is allocated once for a
capacity. `bvh.builders.lbvh` is the same build made of the stages' twins.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from bvh.builders.lbvh import LbvhConfig
from bvh.gpu.build_records import (
    BUILD_PARAMETERS,
    group_count,
    make_parameters,
)
from bvh.gpu.hierarchy import hierarchy
from bvh.gpu.range_bounds import box_pyramid, pyramid_dispatches, pyramid_sizes, range_bounds
from bvh.gpu.sorted_boxes import SortedBoxes
from bvh.gpu.tree_builder import TreeBuilder
from bvh.gpu.tree_depth import tree_depth
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.stage import Stage

TWINS: dict[str, Callable[..., None]] = {
    "hierarchy": hierarchy,
    "tree_depth": tree_depth,
    "box_pyramid": box_pyramid,
    "range_bounds": range_bounds,
}
MOST_PRIMITIVES = 1 << 30  # node indices are signed and a search doubles them


class GpuLbvh(TreeBuilder):
    """Builds over up to `capacity` boxes. LimitError where a buffer would not fit."""

    def __init__(self, device: Device, capacity: int, config: LbvhConfig | None = None) -> None:
        if capacity > MOST_PRIMITIVES:
            raise LimitError(f"{capacity:,} boxes, one build takes {MOST_PRIMITIVES:,}")
        self.config = config or LbvhConfig()
        nodes = max(capacity - 1, 1)
        sizes = {
            "ranges": 8 * nodes,
            "parents": 4 * nodes,
            "deepest": 8,
            "pyramid": 24 * sum(pyramid_sizes(capacity)),
        }
        super().__init__(device, capacity, "lbvh", sizes)
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
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        super().set_count(count)
        self.sorted.set_count(count)
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

    def own_phases(self) -> dict[str, Callable[[Any], None]]:
        resources = {**self.resources, **self.inputs}
        return {
            **self.sorted.phases(self.inputs),
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
