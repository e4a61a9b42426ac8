"""Many small BLASes in one batch on the GPU: about 25 dispatches for all of them together.

    set-up and pairs over all triangles -> a run of blocks a mesh -> one workgroup a mesh: order,
    tree, collapse -> sizes, places -> guest bytes, one container behind the other

Sizes are exact before the first byte is written, so containers are packed tight (bases at multiples
of 256 bytes) without a copy. The containers are those of `bvh.encode`. `resources["blases"]` is
the table that `bvh.gpu.tlas.GpuTlas` takes, so that both fit in one pass.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import group_count
from bvh.gpu.cluster_encode import cluster_encode
from bvh.gpu.cluster_records import (
    CLUSTER_NODE,
    CLUSTER_PARAMETERS,
    CLUSTER_SEGMENT,
    NODE_FORMAT_CODES,
    SEGMENT,
    TREE_RECORD,
    lanes_slot,
    make_cluster_parameters,
    node_capacity,
)
from bvh.gpu.cluster_tree import cluster_tree
from bvh.gpu.pair_records import triangle_ids
from bvh.gpu.pairing import GpuPairing
from bvh.gpu.small_blas_records import (
    SMALL_MESH,
    SMALL_PARAMETERS,
    SmallBlasReport,
    SmallMesh,
)
from bvh.gpu.small_blas_stages import TWINS as SMALL_TWINS
from bvh.gpu.small_sort import small_sort
from bvh.gpu.tlas_records import BLAS_RECORD
from bvh.header import KIND_BLAS
from bvh.layout import BASE_ALIGN_BYTES, GEOMETRY_INDEX_MASK, UNIT_BYTES
from bvh.tree import MAX_DEPTH
from engine.gpu.device import Device
from engine.gpu.errors import LimitError, UserError
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

MOST_TRIANGLES = SEGMENT  # a mesh: blocks that one workgroup takes
RADIUS = 8  # neighbours looked at on each side
ALIGN_UNITS = BASE_ALIGN_BYTES // UNIT_BYTES

TWINS: dict[str, Callable[..., None]] = {
    **SMALL_TWINS,
    "small_sort": small_sort,
    "cluster_tree": cluster_tree,
    "cluster_encode": cluster_encode,
}


def small_blas_bytes(triangles: Sequence[int]) -> int:
    """Bytes that no batch of meshes of so many triangles exceeds: every block a triangle, every
    node two children, FP32."""
    units = [2 + 2 * max(count - 1, 1) + count for count in triangles]
    return UNIT_BYTES * sum(-(-size // ALIGN_UNITS) * ALIGN_UNITS for size in units)


class GpuSmallBlas:
    """Builds up to `meshes` BLASes of together up to `triangles` triangles, each of MOST_TRIANGLES
    at most. `nodes` auto|fp16|fp32, `leaf` 1 or 2 triangles a block. LimitError where a buffer
    would not fit."""

    def __init__(
        self,
        device: Device,
        meshes: int,
        triangles: int,
        *,
        nodes: str = "auto",
        leaf: int = 2,
        radius: int = RADIUS,
    ) -> None:
        if nodes not in NODE_FORMAT_CODES or leaf not in (1, 2):
            raise UserError(f"no small BLAS with nodes '{nodes}', {leaf} triangles a block")
        self.device, self.mesh_capacity, self.capacity = device, meshes, triangles
        self.nodes, self.radius = nodes, radius
        sizes = {
            "triangles": 36 * triangles,
            "triangle_ids": 8 * triangles,
            "meshes": SMALL_MESH.size * meshes,
            "segments": CLUSTER_SEGMENT.size * (meshes + 1),
            "trees": TREE_RECORD.size * meshes,
            "blases": BLAS_RECORD.size * meshes,
            "sizes": 4 * meshes,
            "size_sums": 4 * max(1, group_count(meshes)),
            "total_units": 4,
            "leaves": 64 * triangles,
            "order": 4 * triangles,
            "nodes": CLUSTER_NODE.size * node_capacity(triangles, meshes),
            "leaf_parents": 4 * triangles,
            "roots": 4 * (triangles + 1),
        }
        for name, size in sizes.items():
            device.check_binding(f"small BLAS/{name}", size)
        self.resources = {
            name: device.buffer(f"small BLAS/{name}", size) for name, size in sizes.items()
        }
        usage = "UNIFORM|COPY_DST"
        self._parameters = device.buffer("small BLAS/parameters", SMALL_PARAMETERS.size, usage)
        self._segment_parameters = device.buffer(
            "small BLAS/parameters", CLUSTER_PARAMETERS.size, usage
        )
        self.pairing = GpuPairing(device, triangles, leaf)
        self.resources.update(self.pairing.buffers)
        self.resources["starts"] = self.pairing.resources["starts"]
        self.stages = {
            name: Stage(
                device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin, slots=lanes_slot(device)
            )
            for name, twin in TWINS.items()
        }
        self._given = np.zeros(0, np.int64)
        self.set_output(0, 0)

    def set_output(self, base_bytes: int, end_bytes: int) -> None:
        """The part of the scene buffer that containers go to."""
        if base_bytes % BASE_ALIGN_BYTES:
            raise ValueError(f"first base {base_bytes} is no multiple of {BASE_ALIGN_BYTES}")
        self.base_bytes, self.end_bytes = base_bytes, end_bytes
        self._write_parameters()

    def _write_parameters(self) -> None:
        for buffer, record in self.parameter_records():
            self.device.write(buffer, record)

    def parameter_records(self) -> list[tuple[Any, NDArray[Any]]]:
        """The uniform buffers and what they hold."""
        mine = np.zeros(1, SMALL_PARAMETERS.dtype)
        mine["meshes"], mine["triangles"] = len(self._given), self._given.sum()
        mine["base_unit"] = self.base_bytes // UNIT_BYTES
        mine["limit_unit"] = self.end_bytes // UNIT_BYTES
        segments = make_cluster_parameters(
            segments=len(self._given),
            radius=self.radius,
            roots=1,
            max_levels=MAX_DEPTH,
            node_format=NODE_FORMAT_CODES[self.nodes],
            finish=1,
            kind=KIND_BLAS,
            leaf_units=1,
            parts=1,
            align_units=ALIGN_UNITS,
        )
        return [(self._parameters, mine), (self._segment_parameters, segments)]

    def upload(self, meshes: Sequence[SmallMesh]) -> None:
        """The batch; UserError names a mesh beyond MOST_TRIANGLES, ValueError a batch beyond the
        capacity."""
        counts = np.array([len(mesh.triangles) for mesh in meshes], np.int64)
        for i in np.flatnonzero(counts > MOST_TRIANGLES)[:1]:
            raise UserError(
                f"mesh {i} '{meshes[i].name}': {counts[i]} triangles, a small BLAS takes "
                f"{MOST_TRIANGLES}"
            )
        if len(meshes) > self.mesh_capacity or counts.sum() > self.capacity:
            raise ValueError(
                f"{len(meshes)} meshes of {counts.sum()} triangles, made for "
                f"{self.mesh_capacity} of {self.capacity}"
            )
        geometries = np.array([len(mesh.opaque) for mesh in meshes], np.int64)
        if geometries.sum() > GEOMETRY_INDEX_MASK + 1:
            raise UserError(f"{geometries.sum()} geometries in one batch, the limit is 16777216")
        record = np.zeros(len(meshes), SMALL_MESH.dtype)
        record["first"], record["count"] = np.cumsum(counts) - counts, counts
        record["first_geometry"] = np.cumsum(geometries) - geometries
        record["geometries"] = geometries
        self._given = counts
        self.pairing.set_count(int(counts.sum()))
        self._write_parameters()
        self.device.write(self.resources["meshes"], record)
        if not counts.sum():
            return
        opaque = np.concatenate([mesh.opaque for mesh in meshes])
        geometry = np.concatenate(
            [m.geometry + r["first_geometry"] for m, r in zip(meshes, record, strict=True)]
        )
        primitive = np.concatenate([mesh.primitive for mesh in meshes])
        ids = triangle_ids(geometry.astype(np.uint32), primitive.astype(np.uint32), opaque)
        self.device.write(self.resources["triangle_ids"], ids)
        corners = np.concatenate([np.asarray(m.triangles, np.float32) for m in meshes])
        self.device.write(self.resources["triangles"], corners)

    def phases(self, buffers: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """What a build encodes, in order, each into a pass. `buffers` are the scene's `words` and
        `parents`."""
        resources = {**self.resources, **buffers}
        return {
            "blocks": partial(self._encode_blocks, resources),
            "trees": partial(self._encode_trees, resources),
            "encode": partial(self._encode_bytes, resources),
        }

    def encode(self, scope: Any, buffers: dict[str, Any]) -> None:
        """The whole batch within the pass `scope`: see `phases`."""
        for encode_phase in self.phases(buffers).values():
            encode_phase(scope)

    def _encode_blocks(self, resources: dict[str, Any], scope: Any) -> None:
        self.pairing.encode(scope, resources)
        groups = group_count(int(self._given.sum()))
        self.stages["small_leaves"].dispatch(scope, resources, groups)
        mine = {**resources, "parameters": self._parameters}
        self.stages["small_segments"].dispatch(scope, mine, len(self._given))

    def _encode_trees(self, resources: dict[str, Any], scope: Any) -> None:
        mine = {**resources, "parameters": self._segment_parameters}
        self.stages["small_sort"].dispatch(scope, mine, len(self._given))
        self.stages["cluster_tree"].dispatch(scope, mine, len(self._given))

    def _encode_bytes(self, resources: dict[str, Any], scope: Any) -> None:
        mine = {**resources, "parameters": self._parameters}
        groups = group_count(len(self._given))
        self.stages["small_sizes"].dispatch(scope, mine, groups)
        self.stages["small_places"].dispatch(scope, mine, groups)
        mine["parameters"] = self._segment_parameters
        self.stages["cluster_encode"].dispatch(scope, mine, len(self._given))

    def read(self) -> SmallBlasReport:
        """What the last build made; waits for the GPU. LimitError, with both sizes, where the
        containers did not all fit."""
        count = len(self._given)
        end = self.base_bytes
        if count:
            end += UNIT_BYTES * int(self.device.read(self.resources["total_units"], count=1)[0])
        if end > self.end_bytes:
            raise LimitError(
                f"{count} small BLASes need {end - self.base_bytes:,} bytes, there are "
                f"{self.end_bytes - self.base_bytes:,}"
            )
        blases = self.device.read(self.resources["blases"], BLAS_RECORD.dtype, count=count)
        trees = self.device.read(self.resources["trees"], TREE_RECORD.dtype, count=count)
        segments = self.device.read(self.resources["segments"], CLUSTER_SEGMENT.dtype, count=count)
        kept = trees["primitives"].astype(np.int64)
        return SmallBlasReport(
            bases=blases["base_unit"].astype(np.int64) * UNIT_BYTES,
            bounds=np.stack([blases["low"], blases["high"]], axis=1),
            triangles=kept,
            dropped=self._given - kept,
            blocks=segments["count"].astype(np.int64),
            end_bytes=end,
        )


__all__ = ["GpuSmallBlas", "SmallBlasReport", "SmallMesh", "small_blas_bytes"]
