"""Skinned objects of a prepared scene on the GPU: posed, then refitted, in the pass that is given.

One dispatch poses every skinned vertex in the scene's geometry buffer, which rasteriser and shading
read, too; then each BLAS that holds such vertices is refitted where it lies in the scene's buffer.
Nothing is read back. The TLAS still has the boxes of the pose that it was built for: give the BLAS
table to `encode`, and build it anew from there in the same pass (`bvh.gpu.tlas`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.refit import GpuRefit
from bvh.gpu.refit_plan import block_vertices, make_plan
from bvh.gpu.refit_table import GpuRefitTable
from bvh.header import unpack_header
from bvh.tlas import BvhInstance
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.scene.animation import Clip
from engine.scene.records import VERTEX
from engine.scene.skinning import GpuSkinning, SkinTable, make_skin_table
from passes.prepare import PreparedScene

U32 = NDArray[np.uint32]


def first_vertices(prepared: PreparedScene) -> NDArray[np.int64]:
    """[meshes] the vertex record that each mesh begins at."""
    counts = np.array([len(mesh.positions) for mesh in prepared.scene.meshes], np.int64)
    return np.cumsum(counts) - counts


def skinned_table(prepared: PreparedScene) -> SkinTable:
    """The table of all skinned meshes, each in its object's space. UserError without any."""
    scene, animation = prepared.scene, prepared.scene.animation
    if animation is None or not animation.skinned:
        raise UserError(f"{scene.name}: nothing here is skinned")
    placed = {instance.mesh: instance.transform for instance in scene.instances}
    firsts = first_vertices(prepared)
    return make_skin_table(
        animation,
        [int(firsts[item.mesh]) for item in animation.skinned],
        offsets=[placed[item.mesh][:3, 3] for item in animation.skinned],
    )


def blas_meshes(prepared: PreparedScene) -> dict[int, list[int]]:
    """The meshes that are the geometries of each BLAS that is placed."""
    found: dict[int, list[int]] = {}
    for placed in prepared.bvh.instances:
        count = unpack_header(prepared.bvh.blas_words(placed.blas)).geometry_count
        objects = prepared.scene.instances[placed.first_object : placed.first_object + count]
        found[placed.blas] = [instance.mesh for instance in objects]
    return found


def vertex_triangles(prepared: PreparedScene, meshes: Sequence[int]) -> list[U32]:
    """[m, 3] triangles of each mesh as indices of vertex records."""
    firsts = first_vertices(prepared)
    return [prepared.scene.meshes[i].triangles + np.uint32(firsts[i]) for i in meshes]


def moved_instances(prepared: PreparedScene, clip: Clip, time: float) -> list[BvhInstance]:
    """The TLAS's instances at `time`: those whose node the clip moves, moved; the others, and what
    is skinned, as they are. An instance that stands flattened in the file stays, too."""
    animation = prepared.scene.animation
    if animation is None:
        return list(prepared.bvh.instances)
    rest, worlds = animation.worlds(), animation.worlds(clip, time)
    moving = set(animation.moving_instances(clip))
    placed = []
    for item in prepared.bvh.instances:
        first = prepared.scene.instances[item.first_object]
        node = animation.instance_nodes[item.first_object]
        rigid = item.first_object in moving and first.lifetime == "rigid"
        if rigid and np.linalg.det(rest[node][:3, :3]) != 0:
            # From the file's place to the new one; recentring stays inside.
            step = worlds[node] @ np.linalg.inv(rest[node])
            transform = step @ item.transform
            transform[3] = [0.0, 0.0, 0.0, 1.0]  # an inverse may be off by a rounding
            item = replace(item, transform=transform)
        placed.append(item)
    return placed


def deforming_blases(prepared: PreparedScene) -> dict[int, list[U32]]:
    """For every BLAS that holds a skinned mesh the triangles of its geometries, as indices of
    vertex records."""
    animation = prepared.scene.animation
    skinned = {item.mesh for item in animation.skinned} if animation else set()
    return {
        blas: vertex_triangles(prepared, meshes)
        for blas, meshes in blas_meshes(prepared).items()
        if skinned & set(meshes)
    }


class DeformingObjects:
    """`vertex_first` is the word of vertex record 0 in the geometry buffer (`GpuScene.bases[2]`),
    `bases` are the bytes of the BLASes where they are not the prepared scene's. UserError where
    the scene has nothing skinned, or a block that cannot be refitted."""

    def __init__(
        self,
        device: Device,
        prepared: PreparedScene,
        vertex_first: int,
        bases: Sequence[int] | None = None,
    ) -> None:
        self.prepared = prepared
        self.table = skinned_table(prepared)
        self.skinning = GpuSkinning(device, self.table, vertex_first=vertex_first)
        alike = self.table.alike(len(prepared.pack.vertices))
        self.refits: dict[int, GpuRefit] = {}
        for blas, triangles in deforming_blases(prepared).items():
            words = prepared.bvh.blas_words(blas)
            self.refits[blas] = GpuRefit(
                device,
                make_plan(words, block_vertices(words, triangles, alike)),
                base_bytes=int((prepared.bvh.blas_bases if bases is None else bases)[blas]),
                vertex_words=VERTEX.size // 4,
                vertex_first=vertex_first,
            )
        self.bounds = GpuRefitTable(device, list(self.refits))

    def pose(self, clip: Clip | None, time: float) -> None:
        """The pose of the next `encode`: a clip at a time in seconds, or the file's own pose."""
        animation = self.prepared.scene.animation
        assert animation is not None
        self.skinning.pose(self.table.matrices(animation, animation.worlds(clip, time)))

    def encode(self, scope: Any, buffers: dict[str, Any]) -> None:
        """Within the compute pass `scope`: `geometry` and `bvh`, as `GpuScene` has them, and
        `blases`, the table of BLAS_RECORDs, where a TLAS is built from it."""
        self.skinning.encode(scope, {"vertices": buffers["geometry"]})
        for refit in self.refits.values():
            refit.encode(scope, {"words": buffers["bvh"], "positions": buffers["geometry"]})
        if "blases" in buffers:
            self.bounds.encode(scope, {"words": buffers["bvh"], "blases": buffers["blases"]})
