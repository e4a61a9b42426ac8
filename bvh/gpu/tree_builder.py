"""What builders on the GPU have in common: boxes in, a binary tree in buffers out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from bvh.gpu.build_records import box_buffers, write_boxes
from bvh.tree import EMPTY, Bounds, Tree, empty_bounds
from engine.gpu.device import Device
from engine.gpu.stage import submit_pass


class TreeBuilder(ABC):
    """Builds over up to `capacity` boxes. `resources` has `children` (two i32 an inner node, the
    root first) and `bounds` (six float32 an inner node)."""

    def __init__(self, device: Device, capacity: int, label: str, sizes: dict[str, int]) -> None:
        """`sizes` are bytes of buffers besides the tree's. LimitError where one would not fit."""
        self.device = device
        self.capacity = capacity
        self.label = label
        nodes = max(capacity - 1, 1)
        sizes = {**sizes, "children": 8 * nodes, "bounds": 24 * nodes}
        for name, size in sizes.items():
            device.check_binding(f"{label}/{name}", size)
        self.resources: dict[str, Any] = {
            name: device.buffer(f"{label}/{name}", size) for name, size in sizes.items()
        }
        self.inputs: dict[str, Any] = {}
        self._own: dict[str, Any] | None = None
        self.count = capacity

    def set_count(self, count: int) -> None:
        """A bound on the boxes from now on; at most `capacity`, else ValueError."""
        if not 0 <= count <= self.capacity:
            raise ValueError(f"build over {count} boxes, made for {self.capacity}")
        self.count = count

    @abstractmethod
    def own_phases(self) -> dict[str, Callable[[Any], None]]:
        """What a build over `inputs` encodes, in order."""

    def phases(self, buffers: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """What a build over `buffers` (`state` and `boxes`) encodes, in order; each into a compute
        pass that it is given."""
        self.inputs = {name: buffers[name] for name in ("state", "boxes")}
        return self.own_phases()

    def encode(self, scope: Any, buffers: dict[str, Any]) -> None:
        """The whole build over `buffers` (`state` and `boxes`), within the pass `scope`."""
        for encode_phase in self.phases(buffers).values():
            encode_phase(scope)

    @property
    def tree_buffers(self) -> dict[str, Any]:
        """The last build's buffers, for stages that go on from it."""
        return {**self.inputs, **{name: self.resources[name] for name in ("children", "bounds")}}

    def build_boxes(self, bounds: Bounds) -> Tree:
        """Tree over finite boxes `[n, 2, 3]`, the same as of the stages' twins; in a submission of
        its own. Builds of scenes go by `encode`; this is for whoever has boxes and wants their
        tree, tests first of all."""
        self.set_count(len(bounds))
        if self._own is None:
            self._own = box_buffers(self.device, self.capacity)
        buffers = self._own
        write_boxes(self.device, buffers, bounds)
        submit_pass(self.device, lambda scope: self.encode(scope, buffers), label=self.label)
        return self.read()

    def read(self) -> Tree:
        """Reads the last build back."""
        kept = int(self.device.read(self.inputs["state"], count=1)[0])
        if not kept:
            return Tree(np.full((1, 2), EMPTY, np.int32), empty_bounds(1))
        nodes = max(kept - 1, 1)
        children = self.device.read(self.resources["children"], np.int32, count=2 * nodes)
        bounds = self.device.read(self.resources["bounds"], np.float32, count=6 * nodes)
        return Tree(np.asarray(children).reshape(-1, 2), np.asarray(bounds).reshape(-1, 2, 3))
