"""Skinning on the GPU: joint matrices in, posed vertices straight into a buffer of vertex records.

One dispatch for every skinned vertex of a scene, after `engine.scene.morphing` where some are
morphed. Linear blend as in `engine.scene.skin`, in
float32: matrices are blended, then applied; normals go through the cofactors. Only the position
and the normal of a record are written. Positions equal the twin's bit for bit where no number is
denormal, normals within a step of their code (a GPU's division is not exact).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.stage import Stage
from engine.scene.animation import Animation
from engine.scene.mesh import F32, F64, U32
from engine.scene.morphing import GpuMorphing, MorphedVertices, MorphTable, make_morph_table
from engine.scene.records import NO_STORED_NORMAL
from engine.scene.skin_records import BIND_VERTEX, SKIN_PARAMETERS, VERTEX_WORDS

GROUP_SIZE = 256


@dataclass(frozen=True, slots=True)
class SkinTable:
    """What the stage reads of some skinned meshes, concatenated. Every mesh has matrices of its
    own, because each may stand in a space of its own: object space is world space minus
    `offsets[m]` (see recentring in `passes.prepare`)."""

    bind_vertices: NDArray[Any]  # BIND_VERTEX [n]
    influences: U32  # [n, k, 2] matrix, bits of the weight
    skins: tuple[int, ...]  # of each mesh
    offsets: F64  # [meshes, 3]
    morph: MorphTable | None = None  # whose vertices become bind vertices

    def matrices(self, animation: Animation, worlds: F64) -> F32:
        """[joints of all meshes, 3, 4] of one pose."""
        parts = []
        for skin, offset in zip(self.skins, self.offsets, strict=True):
            rows = animation.joint_matrices(skin, worlds)[:, :3].copy()
            rows[:, :, 3] -= offset
            parts.append(rows)
        return np.concatenate(parts).astype(np.float32)

    def alike(self, vertex_count: int) -> U32:
        """[vertex_count] one number for vertices that every pose moves alike: those of equal bind
        position, influences and morph targets. Vertices of no skinned mesh have their own."""
        numbers = np.arange(vertex_count, dtype=np.uint32)
        positions = np.ascontiguousarray(self.bind_vertices["position"]).view(np.uint32)
        morphs = np.zeros((len(positions), 1), np.uint32)
        if self.morph is not None:
            morphs[self.morph.vertices["bind_vertex"], 0] = self.morph.alike()
        influences = self.influences.reshape(len(positions), -1)
        rows = np.concatenate([positions, influences, morphs], axis=1)
        targets = self.bind_vertices["target_vertex"]
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        numbers[targets] = targets[first][inverse.reshape(-1)]
        return numbers


def make_skin_table(
    animation: Animation,
    first_vertices: Sequence[int],
    which: Sequence[int] | None = None,
    offsets: Sequence[F64] | None = None,
) -> SkinTable:
    """Over the skinned meshes `which` of an animation (all of them by default), whose vertices
    begin at record `first_vertices[i]`."""
    chosen = [animation.skinned[i] for i in which or range(len(animation.skinned))]
    count = sum(len(mesh.positions) for mesh in chosen)
    width = max((mesh.joints.shape[1] for mesh in chosen), default=1)
    vertices = np.zeros(count, BIND_VERTEX.dtype)
    influences = np.zeros((count, width, 2), np.uint32)
    morphed = []
    start, matrix = 0, 0
    for mesh, first in zip(chosen, first_vertices, strict=True):
        part = slice(start, start + len(mesh.positions))
        vertices["position"][part] = mesh.positions
        vertices["normal"][part] = mesh.normals
        vertices["target_vertex"][part] = first + np.arange(len(mesh.positions))
        if mesh.morph is not None:
            morphed.append(MorphedVertices(start, mesh.positions, mesh.normals, mesh.morph))
        used = mesh.joints.shape[1]
        influences[part, :, 0] = matrix
        influences[part, :used, 0] += mesh.joints.astype(np.uint32)
        influences[part, :used, 1] = mesh.weights.astype(np.float32).view(np.uint32)
        start = part.stop
        matrix += len(animation.skins[mesh.skin].joints)
    return SkinTable(
        vertices,
        influences,
        tuple(mesh.skin for mesh in chosen),
        np.zeros((len(chosen), 3)) if offsets is None else np.array(offsets, np.float64),
        make_morph_table(morphed) if morphed else None,
    )


def skin(
    parameters: NDArray[Any],
    bind_vertices: NDArray[Any],
    influences: U32,
    matrices: F32,
    vertices: U32,
) -> None:
    """Twin of skin.wgsl; `vertices` are words."""
    p = parameters[0]
    count, width = int(p["count"]), int(p["influences"])
    pairs = influences.reshape(-1, width, 2)[:count]
    rows = matrices.reshape(-1, 3, 4)
    weights = np.ascontiguousarray(pairs[..., 1]).view(np.float32)
    blended = np.zeros((count, 3, 4), np.float32)
    for k in range(width):
        blended += weights[:, k, None, None] * rows[pairs[:, k, 0]]
    bound = bind_vertices[:count]
    linear = blended[..., :3]
    posed = np.stack([_dot(linear[:, i], bound["position"]) for i in range(3)], axis=1)
    posed += blended[..., 3]
    normal = bound["normal"]
    cofactors = [_cross(linear[:, (i + 1) % 3], linear[:, (i + 2) % 3]) for i in range(3)]
    turned = np.stack([_dot(row, normal) for row in cofactors], axis=1)
    turned[_dot(linear[:, 0], cofactors[0]) < 0] *= -1
    records = vertices[int(p["vertex_first"]) :]
    records = records[: len(records) // VERTEX_WORDS * VERTEX_WORDS].reshape(-1, VERTEX_WORDS)
    target = bound["target_vertex"]
    records[target, :3] = posed.view(np.uint32)
    records[target, 3] = _octahedral(turned)


def _dot(a: F32, b: F32) -> F32:
    product = a * b
    return np.asarray((product[:, 0] + product[:, 1]) + product[:, 2])


def _cross(a: F32, b: F32) -> F32:
    y, z = np.array([1, 2, 0]), np.array([2, 0, 1])
    return a[:, y] * b[:, z] - a[:, z] * b[:, y]


def _octahedral(normals: F32) -> U32:
    size = np.abs(normals)
    length = (size[:, 0] + size[:, 1]) + size[:, 2]
    stored = (length > 0) & (length < np.float32(3e38))
    unit = normals / np.where(stored, length, np.float32(1))[:, None]
    pair = unit[:, :2]
    folded = (1 - np.abs(pair[:, ::-1])) * np.where(pair >= 0, np.float32(1), np.float32(-1))
    pair = np.where(unit[:, 2:] < 0, folded, pair).clip(-1, 1)
    code = np.rint(pair * np.float32(32767)).astype(np.int32).view(np.uint32) & 0xFFFF
    packed = code[:, 0] | code[:, 1] << np.uint32(16)
    return np.where(stored, packed, np.uint32(NO_STORED_NORMAL))


class GpuSkinning:
    """Poses the vertices of a table. `vertex_first` is the word of the first vertex record in
    the buffer that `encode` is given."""

    def __init__(self, device: Device, table: SkinTable, *, vertex_first: int = 0) -> None:
        self.device = device
        self.table = table
        self.stage = Stage(device, "skin", "engine/scene/shaders/skin.wgsl", twin=skin)
        joints = int(table.influences[..., 0].max(initial=0)) + 1
        self.resources = {
            "parameters": device.upload(
                "skin/parameters", self.parameters(vertex_first), "UNIFORM|COPY_DST"
            ),
            "bind_vertices": device.upload("skin/bind vertices", table.bind_vertices),
            "influences": device.upload("skin/influences", table.influences),
            "matrices": device.buffer("skin/matrices", 48 * joints),
        }
        self._joints = joints
        self._morphing: GpuMorphing | None = None
        if table.morph is not None:
            self._morphing = GpuMorphing(device, table.morph, self.resources["bind_vertices"])

    def parameters(self, vertex_first: int) -> NDArray[Any]:
        """The SKIN_PARAMETERS record."""
        record = np.zeros(1, SKIN_PARAMETERS.dtype)
        record["count"], record["influences"] = self.table.influences.shape[:2]
        record["vertex_first"] = vertex_first
        return record

    def pose(self, matrices: F32, morph_weights: Mapping[int, F64]) -> None:
        """The pose from now on: `SkinTable.matrices`, `Animation.morph_weights`."""
        self.device.write(self.resources["matrices"], matrices[: self._joints])
        if self._morphing is not None:
            self._morphing.pose(morph_weights)

    def encode(self, scope: Any, buffers: dict[str, Any]) -> None:
        """Within the compute pass `scope`: writes into `vertices`."""
        if self._morphing is not None:
            self._morphing.encode(scope)
        resources = {**self.resources, "vertices": buffers["vertices"]}
        self.stage.dispatch(scope, resources, -(-len(self.table.bind_vertices) // GROUP_SIZE))
