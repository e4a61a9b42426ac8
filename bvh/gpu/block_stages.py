"""Triangles to blocks on the GPU: what pairs (`bvh.gpu.pairing`) and fans (`bvh.gpu.fan_near`) have
in common, from the buffers around them to the order of phases."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from bvh.gpu.build_records import BUILD_STATE, group_count
from bvh.gpu.pair_records import MOST_TRIANGLES
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.primitives.scan import ExclusiveScan
from engine.gpu.stage import Stage


class BlockStages(ABC):
    """Stages over up to `capacity` triangles. After `encode`, `buffers` holds `state` (kept =
    blocks), `boxes` and `blocks`. LimitError where a buffer would not fit."""

    twins: ClassVar[dict[str, Callable[..., None]]]
    phase: ClassVar[str]  # name of the phase that makes the blocks

    def __init__(self, device: Device, capacity: int, own_sizes: dict[str, int]) -> None:
        """`own_sizes` are bytes of buffers besides those that all have."""
        if capacity > MOST_TRIANGLES - 2:
            raise LimitError(f"{capacity:,} triangles, one build takes {MOST_TRIANGLES - 2:,}")
        self.device = device
        self.capacity = capacity
        sizes = {
            "triangle_boxes": 24 * capacity,
            "starts": 4 * capacity,
            "boxes": 24 * capacity,
            "state": BUILD_STATE.size,
            **own_sizes,
        }
        for name, size in sizes.items():
            device.check_binding(f"{self.phase}/{name}", size)
        self.resources = {
            name: device.buffer(f"{self.phase}/{name}", size) for name, size in sizes.items()
        }
        self.scan = ExclusiveScan(device, capacity, with_total=True)
        self.resources["block_total"] = self.scan.total
        self.stages = {
            name: Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
            for name, twin in self.twins.items()
        }

    @abstractmethod
    def write_parameters(self) -> None:
        """Uploads what the stages read of `count`."""

    @abstractmethod
    def encode_blocks(self, scope: Any, resources: dict[str, Any], groups: int) -> None:
        """Blocks of triangles whose boxes are set up."""

    def set_count(self, count: int) -> None:
        """Triangles from now on; at most `capacity`, else ValueError."""
        self.scan.set_count(count)
        self.count = count
        self.write_parameters()

    @property
    def buffers(self) -> dict[str, Any]:
        """What the build goes on from."""
        return {name: self.resources[name] for name in ("state", "boxes", "blocks")}

    def phases(self, inputs: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """What packing of `inputs` (triangles and triangle_ids) encodes, in order."""
        resources = {**self.resources, **inputs}
        groups = max(1, group_count(self.count))
        return {
            "set-up": lambda scope: self.stages["triangle_setup"].dispatch(
                scope, resources, groups
            ),
            self.phase: lambda scope: self.encode_blocks(scope, resources, groups),
        }

    def encode(self, scope: Any, inputs: dict[str, Any]) -> None:
        """Within the pass `scope`, from `triangles` (nine float32 each) and `triangle_ids` (see
        `bvh.gpu.pair_records.triangle_ids`)."""
        for encode_phase in self.phases(inputs).values():
            encode_phase(scope)
