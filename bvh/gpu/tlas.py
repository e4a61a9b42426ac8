"""The TLAS of a frame on the GPU: instance records to guest bytes, nothing read back.

    set-up (guest bytes, world boxes) -> compaction -> Morton order -> trees of segments
    -> tree over their roots -> guest bytes at byte 0 of the scene buffer

Five dispatches up to SEGMENT instances, seven up to MOST_TILES times as many (`bvh.gpu.tlas_sort`)
and twenty beyond: PLOC and the collapse happen in workgroup memory (`bvh.gpu.cluster_tree`), so
there is no dispatch a level.
The instances may be uploaded or written by an earlier stage of the same frame, as may the BLAS
table; `set_bound` says how many there may be, `instance_count` on the GPU how many there are.

What `bvh.tlas.build_tlas` refuses with an error is left out here, counted and named by `read`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import BUILD_STATE, group_count
from bvh.gpu.cluster_encode import cluster_encode
from bvh.gpu.cluster_records import (
    CLUSTER_NODE,
    CLUSTER_PARAMETERS,
    CLUSTER_SEGMENT,
    SEGMENT,
    TREE_RECORD,
    lanes_slot,
    make_cluster_parameters,
    node_capacity,
)
from bvh.gpu.cluster_tree import cluster_tree
from bvh.gpu.small_sort import small_sort
from bvh.gpu.sorted_boxes import SortedBoxes
from bvh.gpu.tlas_records import (
    BLAS_RECORD,
    INSTANCE_GROUP,
    INSTANCE_RECORD,
    NONE,
    PLACED_INSTANCE,
    REMOVED,
    TLAS_PARAMETERS,
    TLAS_REPORT,
    TlasReport,
    pack_instance_records,
)
from bvh.gpu.tlas_setup import instance_compact, instance_setup
from bvh.gpu.tlas_sort import GRID_BITS, MOST_TILES, SIZE_BITS, TileSort
from bvh.header import KIND_TLAS
from bvh.layout import BASE_ALIGN_BYTES, HEADER_BYTES, UNIT_BYTES
from bvh.tlas import BvhInstance
from bvh.tree import MAX_DEPTH
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.stage import Stage

MOST_INSTANCES = SEGMENT * SEGMENT  # one workgroup takes the roots of so many segments
# Clusters that a segment leaves to the workgroup above: more of them make a better tree there.
MOST_ROOTS = 32
TOP_LEVELS = 9  # SEGMENT clusters halved down to one
# Neighbours looked at on each side. Wider searches gave worse trees in the hall and no better ones
# over random boxes.
RADIUS = 8

# Workgroups of the encoder a segment: a lane for each of its nodes and leaves, where they run at
# once.
ENCODER_PARTS = 4

TWINS: dict[str, Callable[..., None]] = {
    "instance_setup": instance_setup,
    "instance_compact": instance_compact,
    "small_sort": small_sort,
    "cluster_tree": cluster_tree,
    "cluster_encode": cluster_encode,
}


def tlas_bytes(capacity: int) -> int:
    """Bytes at the start of the scene buffer that hold any TLAS of so many instances: 128 an
    instance and 128 a box node, of which there is always one and never as many as instances."""
    size = HEADER_BYTES + 128 * (max(capacity - 1, 1) + capacity)
    return -(-size // BASE_ALIGN_BYTES) * BASE_ALIGN_BYTES


class GpuTlas:
    """Builds TLASes of up to `capacity` instances of the BLASes in `blas_table` (a buffer of
    `blas_count` BLAS_RECORDs). LimitError where that many do not fit."""

    def __init__(
        self,
        device: Device,
        capacity: int,
        blas_table: Any,
        blas_count: int,
        *,
        radius: int = RADIUS,
    ) -> None:
        if capacity > MOST_INSTANCES:
            raise LimitError(f"{capacity:,} instances, one TLAS takes {MOST_INSTANCES:,}")
        self.device, self.capacity, self.radius = device, capacity, radius
        self.blas_count = blas_count
        self.encoder_parts = 2 if device.info.is_cpu else ENCODER_PARTS
        segments = max(1, -(-capacity // SEGMENT))
        self.reserved_bytes = tlas_bytes(capacity)
        sizes = {
            "instances": INSTANCE_RECORD.size * capacity,
            "instance_count": 4,
            "placed": PLACED_INSTANCE.size * capacity,
            "summaries": INSTANCE_GROUP.size * max(1, group_count(capacity)),
            "report": TLAS_REPORT.size,
            "boxes": 24 * capacity,
            "leaves": 128 * capacity,
            "state": BUILD_STATE.size,
            "segments": CLUSTER_SEGMENT.size * (segments + 1),
            "nodes": CLUSTER_NODE.size * node_capacity(capacity, segments),
            "leaf_parents": 4 * capacity,
            "roots": 4 * (capacity + 1),
            "order": 4 * capacity,
            "trees": TREE_RECORD.size,
        }
        for name, size in sizes.items():
            device.check_binding(f"tlas/{name}", size)
        self.resources = {name: device.buffer(f"tlas/{name}", size) for name, size in sizes.items()}
        self.resources["blases"] = blas_table
        tree = np.zeros(1, TREE_RECORD.dtype)
        tree["limit_unit"] = self.reserved_bytes // UNIT_BYTES
        device.write(self.resources["trees"], tree)
        usage = "UNIFORM|COPY_DST"
        self._parameters = device.buffer("tlas/parameters", TLAS_PARAMETERS.size, usage)
        self._segment_parameters = device.buffer("tlas/parameters", CLUSTER_PARAMETERS.size, usage)
        self._top_parameters = device.buffer("tlas/parameters", CLUSTER_PARAMETERS.size, usage)
        self._sort = None
        if segments > MOST_TILES:
            self._sort = SortedBoxes(device, capacity, GRID_BITS, SIZE_BITS)
        self._tile_sort = None
        if segments > 1:
            self._tile_sort = TileSort(device, min(capacity, MOST_TILES * SEGMENT))
        self.stages = {
            name: Stage(
                device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin, slots=lanes_slot(device)
            )
            for name, twin in TWINS.items()
        }
        self.set_bound(capacity)

    def set_bound(self, bound: int) -> None:
        """At most so many instances from now on, which sizes the dispatches; at most `capacity`,
        else ValueError. The count on the GPU becomes the same."""
        if not 0 <= bound <= self.capacity:
            raise ValueError(f"{bound} instances, made for {self.capacity}")
        self.bound = bound
        self.segments = max(1, -(-bound // SEGMENT))
        if self._sort:
            self._sort.set_count(bound)
        for buffer, record in self.parameter_records():
            self.device.write(buffer, record)
        self.device.write(self.resources["instance_count"], np.array([bound], np.uint32))

    def parameter_records(self) -> list[tuple[Any, NDArray[Any]]]:
        """The uniform buffers and what they hold: instances, segments, top."""
        mine = np.zeros(1, TLAS_PARAMETERS.dtype)
        mine["bound"], mine["segments"] = self.bound, self.segments
        mine["blas_count"] = self.blas_count
        several = self.segments > 1
        left = max(1, min(MOST_ROOTS, SEGMENT // self.segments)) if several else 1
        shared = dict(
            segments=self.segments,
            radius=self.radius,
            kind=KIND_TLAS,
            leaf_units=2,
            parts=self.encoder_parts,
            align_units=1,
        )
        segments = make_cluster_parameters(
            **shared,
            roots=left,
            max_levels=MAX_DEPTH - TOP_LEVELS if several else MAX_DEPTH,
            finish=int(not several),
        )
        top = make_cluster_parameters(
            **shared, roots=1, max_levels=MAX_DEPTH, finish=1, top=int(several), roots_below=left
        )
        return [
            (self._parameters, mine),
            (self._segment_parameters, segments),
            (self._top_parameters, top),
        ]

    def upload(self, instances: Sequence[BvhInstance]) -> None:
        """This frame's instances; ids are their indices."""
        self.set_bound(len(instances))
        self.device.write(self.resources["instances"], pack_instance_records(instances))

    def phases(self, buffers: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """What a build encodes, in order, each into a pass. `buffers` are the scene's `words` and
        `parents`, and, instead of what was uploaded, `instances` and `instance_count`, or
        `blases`."""
        resources = {**self.resources, **buffers}
        return {
            "set-up": partial(self._encode_setup, resources),
            "order": partial(self._encode_order, resources),
            "trees": partial(self._encode_trees, resources),
            "encode": partial(self._encode_bytes, resources),
        }

    def encode(self, scope: Any, buffers: dict[str, Any]) -> None:
        """The whole build within the pass `scope`: see `phases`."""
        for encode_phase in self.phases(buffers).values():
            encode_phase(scope)

    def _encode_setup(self, resources: dict[str, Any], scope: Any) -> None:
        mine = {**resources, "parameters": self._parameters}
        groups = group_count(max(self.bound, 1))
        self.stages["instance_setup"].dispatch(scope, mine, groups)
        self.stages["instance_compact"].dispatch(scope, mine, groups)

    def _encode_order(self, resources: dict[str, Any], scope: Any) -> None:
        if self.segments > MOST_TILES and self._sort:
            self._sort.encode(scope, resources)
            return
        if self.segments > 1 and self._tile_sort:
            mine = {**resources, "parameters": self._parameters}
            self._tile_sort.encode(scope, self.bound, mine)
            return
        mine = {**resources, "parameters": self._segment_parameters}
        self.stages["small_sort"].dispatch(scope, mine, 1)

    def _encode_trees(self, resources: dict[str, Any], scope: Any) -> None:
        mine = {**resources, "parameters": self._segment_parameters}
        if self.segments > MOST_TILES and self._sort:
            mine["order"] = self._sort.payload
        self.stages["cluster_tree"].dispatch(scope, mine, self.segments)
        if self.segments > 1:
            mine["parameters"] = self._top_parameters
            self.stages["cluster_tree"].dispatch(scope, mine, 1)

    def _encode_bytes(self, resources: dict[str, Any], scope: Any) -> None:
        mine = {**resources, "parameters": self._top_parameters}
        groups = self.encoder_parts * (self.segments + int(self.segments > 1))
        self.stages["cluster_encode"].dispatch(scope, mine, groups)

    def read(self, words: Any) -> TlasReport:
        """What became of the last build's instances; waits for the GPU."""
        report = self.device.read(self.resources["report"], TLAS_REPORT.dtype, count=1)[0]
        units = int(self.device.read(words, offset=16, count=1)[0])
        named = list(enumerate(REMOVED))[1:]
        return TlasReport(
            kept=int(report["counts"][0]),
            bytes=UNIT_BYTES * units,
            removed={name: int(report["counts"][i]) for i, name in named},
            first={
                name: int(report["first"][i]) for i, name in named if report["first"][i] != NONE
            },
        )


__all__ = ["BLAS_RECORD", "GpuTlas", "TlasReport", "tlas_bytes"]
