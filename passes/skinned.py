"""The skinned meshes of a scene: their table for the GPU, and the triangles that they deform.

A deforming BLAS is refitted by moving the corners of its blocks. So triangles may share a block
only over vertices that every pose moves alike; `may_refit` says whether a BLAS holds to that.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bvh.build import Blas
from bvh.gpu.refit_plan import block_vertices
from bvh.tlas import BvhInstance
from engine.gpu.errors import UserError
from engine.scene.scene import Scene
from engine.scene.skinning import SkinTable, make_skin_table
from passes.build_blases import BlasRequest

U32 = NDArray[np.uint32]


def first_vertices(scene: Scene) -> NDArray[np.int64]:
    """[meshes] the vertex record that each mesh begins at."""
    counts = np.array([len(mesh.positions) for mesh in scene.meshes], np.int64)
    return np.cumsum(counts) - counts


def vertex_count(scene: Scene) -> int:
    """Of all meshes."""
    return sum(len(mesh.positions) for mesh in scene.meshes)


def vertex_triangles(scene: Scene, meshes: Sequence[int]) -> list[U32]:
    """[m, 3] triangles of each mesh as indices of vertex records."""
    firsts = first_vertices(scene)
    return [scene.meshes[i].triangles + np.uint32(firsts[i]) for i in meshes]


def skinned_table(scene: Scene) -> SkinTable:
    """The table of all skinned meshes, each in its object's space. UserError without any."""
    animation = scene.animation
    if animation is None or not animation.skinned:
        raise UserError(f"{scene.name}: nothing here is skinned")
    placed = {instance.mesh: instance.transform for instance in scene.instances}
    firsts = first_vertices(scene)
    return make_skin_table(
        animation,
        [int(firsts[item.mesh]) for item in animation.skinned],
        offsets=[placed[item.mesh][:3, 3] for item in animation.skinned],
    )


def may_refit(words: U32, triangles: Sequence[U32], alike: U32) -> bool:
    """Whether every block of the BLAS container stays one when its mesh deforms; arguments as of
    `bvh.gpu.refit_plan.block_vertices`."""
    try:
        block_vertices(words, triangles, alike)
    except UserError:
        return False
    return True


class Refittable:
    """Says of BLAS number i, as built, whether it can be refitted as its meshes deform."""

    def __init__(
        self, scene: Scene, placed: Sequence[BvhInstance], requests: Sequence[BlasRequest]
    ) -> None:
        skinned = {m.mesh for m in scene.animation.skinned} if scene.animation else set()
        self._triangles: dict[int, list[np.ndarray]] = {}
        for item in placed:
            last = item.first_object + len(requests[item.blas].meshes)
            parts = scene.instances[item.first_object : last]
            meshes = [part.mesh for part in parts]
            if skinned & set(meshes):
                self._triangles[item.blas] = vertex_triangles(scene, meshes)
        self._alike = np.zeros(0, np.uint32)
        if self._triangles:
            self._alike = skinned_table(scene).alike(vertex_count(scene))

    def __call__(self, index: int, blas: Blas) -> bool:
        triangles = self._triangles.get(index)
        return triangles is None or may_refit(blas.words, triangles, self._alike)
