"""Skinned objects of a prepared scene on the GPU: posed, then refitted, in the pass that is given.

One dispatch poses every skinned vertex in the scene's geometry buffer, which rasteriser and shading
read, too (after one that morphs, where there are targets); then each BLAS that holds such vertices
is refitted where it lies in the scene's buffer. Nothing is read back. The TLAS still has the boxes
of the pose that it was built for: give the BLAS table to `encode`, and build it anew from there in
the same pass (`bvh.gpu.tlas`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.refit import GpuRefit
from bvh.gpu.refit_plan import block_vertices, make_plan
from bvh.gpu.refit_table import GpuRefitTable
from bvh.header import unpack_header
from engine.gpu.device import Device
from engine.scene.animation import Clip
from engine.scene.records import VERTEX
from engine.scene.skinning import GpuSkinning
from passes.prepare import PreparedScene
from passes.skinned import skinned_table, vertex_triangles

U32 = NDArray[np.uint32]


def blas_meshes(prepared: PreparedScene) -> dict[int, list[int]]:
    """The meshes that are the geometries of each BLAS that is placed."""
    found: dict[int, list[int]] = {}
    for placed in prepared.bvh.instances:
        count = unpack_header(prepared.bvh.blas_words(placed.blas)).geometry_count
        objects = prepared.scene.instances[placed.first_object : placed.first_object + count]
        found[placed.blas] = [instance.mesh for instance in objects]
    return found


def deforming_blases(prepared: PreparedScene) -> dict[int, list[U32]]:
    """For every BLAS that holds a skinned mesh the triangles of its geometries, as indices of
    vertex records."""
    animation = prepared.scene.animation
    skinned = {item.mesh for item in animation.skinned} if animation else set()
    return {
        blas: vertex_triangles(prepared.scene, meshes)
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
        self.table = skinned_table(prepared.scene)
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
        matrices = self.table.matrices(animation, animation.worlds(clip, time))
        self.skinning.pose(matrices, animation.morph_weights(clip, time))

    def encode(self, scope: Any, buffers: dict[str, Any]) -> None:
        """Within the compute pass `scope`: `geometry` and `bvh`, as `GpuScene` has them, and
        `blases`, the table of BLAS_RECORDs, where a TLAS is built from it."""
        self.skinning.encode(scope, {"vertices": buffers["geometry"]})
        for refit in self.refits.values():
            refit.encode(scope, {"words": buffers["bvh"], "positions": buffers["geometry"]})
        if "blases" in buffers:
            self.bounds.encode(scope, {"words": buffers["bvh"], "blases": buffers["blases"]})
