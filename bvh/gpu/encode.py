"""Guest bytes from a four-wide tree on the GPU: the container that `bvh.encode.encode` writes.

Every wide node chooses its format (1 unit FP16 or 2 units FP32), a scan over the units gives each
its place, one lane writes the header, and then pointers, boxes and blocks are written where they
belong, from children that lie in depth-first order. Leaves need no scan: a node's leaves are a run
of depth-first order, known from its binary node's range. Half bounds are rounded by integers, so
that the bytes are the same on every adapter.

The exact size is known after the scan, on the GPU. Where it is more than the output has room for,
nothing is written and `encode_summary` says so; `read_summary` raises.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import group_count, sweep_groups
from bvh.gpu.encode_records import ENCODE_PARAMETERS, ENCODE_SUMMARY, FORMATS
from bvh.gpu.encode_stages import HEADER_UNITS, TWINS
from bvh.layout import UNIT_BYTES
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.primitives.scan import ExclusiveScan
from engine.gpu.stage import Stage


def most_units(blocks: int) -> int:
    """Units that no container of so many blocks exceeds: every node with two children, FP32."""
    return HEADER_UNITS + 2 * max(blocks - 1, 1) + blocks


class GpuEncode:
    """Encodes trees of up to `capacity` blocks, with nodes `auto`, `fp16` or `fp32`.

    `encode` takes the buffers of the tree (state, boxes, bounds), of its order (ranges,
    leaf_order), of the collapse (wide_children, places, wide_summary), of the triangles (blocks,
    triangles, triangle_ids) and the output's (words, parent_links)."""

    twins = TWINS
    block_shader = "bvh/gpu/shaders/block_pair.wgsl"
    leaf_stages: tuple[str, ...] = ("write_blocks",)

    def __init__(self, device: Device, capacity: int, nodes: str = "auto") -> None:
        self.device = device
        self.capacity = capacity
        self.nodes = nodes
        most = max(capacity - 1, 1)
        device.check_binding("encode/node_units", 4 * most)
        self._scan_count = device.buffer("encode/node_count", 4)
        self._scan = ExclusiveScan(device, most, with_total=True, live=self._scan_count)
        self.resources = {
            "parameters": device.buffer(
                "encode/parameters", ENCODE_PARAMETERS.size, "UNIFORM|COPY_DST"
            ),
            "node_units": device.buffer("encode/node_units", 4 * most),
            "node_count": self._scan_count,
            "unit_total": self._scan.total,
            "fan_total": device.buffer("encode/fan_total", 4),
            "encode_summary": device.buffer("encode/summary", ENCODE_SUMMARY.size),
        }
        slots = {"block": self.block_shader}
        self.stages = {
            name: Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", slots=slots, twin=twin)
            for name, twin in self.twins.items()
        }
        self.capacity_units = 0
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """A bound on the blocks from now on; at most `capacity`, else ValueError."""
        if not 0 <= count <= self.capacity:
            raise ValueError(f"encoding of {count} blocks, made for {self.capacity}")
        self.count = count
        self._scan.set_count(max(count - 1, 1))

    def set_output(self, base_unit: int, capacity_units: int, geometry_count: int) -> None:
        """Where the container goes in the output, in units of 64 bytes from its start (a multiple
        of four: a descriptor counts in 256 bytes), and how many it may take there."""
        if base_unit % 4:
            raise ValueError(f"a container at unit {base_unit} is not aligned to 256 bytes")
        self.capacity_units = capacity_units
        self.device.write(
            self.resources["parameters"],
            encode_parameters(base_unit, capacity_units, self.nodes, geometry_count),
        )

    def phases(self, inputs: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """The encoder's one phase, into a pass that it is given."""
        return {"encode": partial(self._encode, {**inputs, **self.resources})}

    def encode(self, scope: Any, inputs: dict[str, Any]) -> None:
        """Within the pass `scope`, after the stages that fill `inputs`."""
        self.phases(inputs)["encode"](scope)

    def _encode(self, resources: dict[str, Any], scope: Any) -> None:
        nodes = min(group_count(max(self.count - 1, 1)), sweep_groups(self.device))
        leaves = max(1, min(group_count(self.count), sweep_groups(self.device)))
        self._count_fans(scope, resources, leaves)
        self.stages["choose_formats"].dispatch(scope, resources, nodes)
        self._scan.encode(scope, self.resources["node_units"])
        self.stages["write_header"].dispatch(scope, resources, 1)
        self.stages["link_nodes"].dispatch(scope, resources, nodes)
        self.stages["pack_boxes"].dispatch(scope, resources, nodes)
        for name in self.leaf_stages:
            self.stages[name].dispatch(scope, resources, leaves)

    def _count_fans(self, scope: Any, resources: dict[str, Any], groups: int) -> None:
        """Pairs have none: `fan_total` stays 0."""

    def read_summary(self) -> NDArray[Any]:
        """The last container's ENCODE_SUMMARY record; LimitError where it did not fit."""
        buffer = self.resources["encode_summary"]
        summary = self.device.read(buffer, ENCODE_SUMMARY.dtype, count=1)
        if not summary["fits"][0]:
            raise LimitError(no_room(summary[0], self.capacity_units))
        return np.asarray(summary)


def no_room(summary: Any, capacity_units: int) -> str:
    """What an ENCODE_SUMMARY says that does not fit."""
    return (
        f"the container needs {UNIT_BYTES * int(summary['units']):,} bytes, its buffer "
        f"has room for {UNIT_BYTES * capacity_units:,}"
    )


def encode_parameters(
    base_unit: int, capacity_units: int, nodes: str, geometry_count: int
) -> NDArray[Any]:
    """One ENCODE_PARAMETERS record."""
    record = np.zeros(1, ENCODE_PARAMETERS.dtype)
    record["base_unit"] = base_unit
    record["capacity_units"] = capacity_units
    record["node_format"] = FORMATS.index(nodes)
    record["geometry_count"] = geometry_count
    return record
