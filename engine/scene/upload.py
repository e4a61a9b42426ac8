"""A scene as the arrays of the storage buffers (records of engine/scene/records.py).

Vertices and triangles of shared meshes are stored once; objects are the scene's instances in
order. Normals are octahedral, 2 x 16-bit snorm (Cigolla et al., "A Survey of Efficient
Representations for Independent Unit Vectors", JCGT 2014). Sizes are not checked against an
adapter here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError
from engine.scene import records
from engine.scene.material import Material, Texture, plain_material
from engine.scene.mesh import F32, U32
from engine.scene.mips import mip_chain
from engine.scene.scene import Scene

_WRAP = {
    "repeat": records.WRAP_REPEAT,
    "clamp": records.WRAP_CLAMP,
    "mirror": records.WRAP_MIRROR,
}


@dataclass(frozen=True, slots=True)
class ScenePack:
    """C-contiguous arrays, one a storage buffer; an empty list becomes one neutral record."""

    vertices: NDArray[Any]  # records.VERTEX [v]
    indices: U32  # [3 * triangles], into the whole of `vertices`
    objects: NDArray[Any]  # records.OBJECT [instances]
    materials: NDArray[Any]  # records.MATERIAL
    texture_table: NDArray[Any]  # records.TEXTURE
    texels: U32  # RGBA8, R in the low byte, all levels of a texture consecutive


def pack_scene(scene: Scene, like: ScenePack | None = None) -> ScenePack:
    """All buffers of a scene. UserError names an instance whose transform cannot be inverted.
    `like` is of a scene with the same textures, whose mips are not made again."""
    vertices, indices, first_triangles = _pack_meshes(scene)
    if like is None:
        table, texels = _pack_textures(scene.textures)
    else:
        table, texels = like.texture_table, like.texels
    return ScenePack(
        vertices=vertices,
        indices=indices,
        objects=_pack_objects(scene, first_triangles),
        materials=_pack_materials(scene.materials or (plain_material(),)),
        texture_table=table,
        texels=texels,
    )


def encode_normals(normals: F32) -> U32:
    """[n] octahedral codes, x in the low 16 bits; an all-zero row gives NO_STORED_NORMAL."""
    length = np.abs(normals).sum(axis=1, dtype=np.float64)
    stored = length > 0
    unit = normals / np.where(stored, length, 1.0)[:, None]
    x, y = unit[:, 0], unit[:, 1]
    below = unit[:, 2] < 0
    folded_x = (1 - np.abs(y)) * np.where(x >= 0, 1.0, -1.0)
    folded_y = (1 - np.abs(x)) * np.where(y >= 0, 1.0, -1.0)
    pair = np.stack([np.where(below, folded_x, x), np.where(below, folded_y, y)], axis=1)
    half = np.rint(pair.clip(-1, 1) * 32767).astype(np.int16).view(np.uint16).astype(np.uint32)
    code = half[:, 0] | (half[:, 1] << np.uint32(16))
    return np.where(stored, code, np.uint32(records.NO_STORED_NORMAL))


def decode_normals(codes: U32) -> F32:
    """[n, 3] unit normals of `encode_normals`; zero rows for NO_STORED_NORMAL."""
    codes = np.ascontiguousarray(codes, np.uint32)
    pair = codes.view(np.int16).reshape(-1, 2).astype(np.float64) / 32767
    x, y = pair[:, 0], pair[:, 1]
    z = 1 - np.abs(x) - np.abs(y)
    fold = np.maximum(-z, 0)
    x, y = x - np.copysign(fold, x), y - np.copysign(fold, y)
    normals = np.stack([x, y, z], axis=1)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    normals[codes == records.NO_STORED_NORMAL] = 0
    return normals.astype(np.float32)


def _pack_meshes(scene: Scene) -> tuple[NDArray[Any], U32, list[int]]:
    vertex_count = sum(len(mesh.positions) for mesh in scene.meshes)
    triangle_count = sum(len(mesh.triangles) for mesh in scene.meshes)
    vertices = np.zeros(max(vertex_count, 1), records.VERTEX.dtype)
    indices = np.zeros((max(triangle_count, 1), 3), np.uint32)
    first_triangles: list[int] = []
    vertex, triangle = 0, 0
    for mesh in scene.meshes:
        here = slice(vertex, vertex + len(mesh.positions))
        vertices["position"][here] = mesh.positions
        vertices["normal"][here] = encode_normals(mesh.normals)
        vertices["uv"][here] = mesh.uvs
        vertices["color"][here] = mesh.colors.view("<u4")[:, 0]
        if mesh.radii is not None:
            vertices["radius"][here] = mesh.radii
        there = slice(triangle, triangle + len(mesh.triangles))
        np.add(mesh.triangles, np.uint32(vertex), out=indices[there])
        first_triangles.append(triangle)
        vertex, triangle = here.stop, there.stop
    return vertices, indices.reshape(-1), first_triangles


def _pack_objects(scene: Scene, first_triangles: Sequence[int]) -> NDArray[Any]:
    objects = np.zeros(max(len(scene.instances), 1), records.OBJECT.dtype)
    for record, instance in zip(objects, scene.instances, strict=False):
        mesh = scene.meshes[instance.mesh]
        record["world_to_object"] = _inverse(instance.transform, instance.name)[:3]
        record["object_to_world"] = instance.transform[:3]
        record["first_triangle"] = first_triangles[instance.mesh]
        record["triangle_count"] = len(mesh.triangles)
        record["material"] = mesh.material
        record["mask"] = instance.mask
    return objects


def _inverse(transform: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    try:
        inverse = np.asarray(np.linalg.inv(transform), np.float64)
    except np.linalg.LinAlgError as error:
        raise UserError(f"instance {name} has a singular transform") from error
    with np.errstate(over="ignore", invalid="ignore"):
        single = inverse.astype(np.float32), np.asarray(transform).astype(np.float32)
    if not np.isfinite(single).all():
        raise UserError(f"instance {name} has a transform beyond the range of 32-bit floats")
    return inverse


def _pack_materials(materials: Sequence[Material]) -> NDArray[Any]:
    packed = np.zeros(len(materials), records.MATERIAL.dtype)
    for record, material in zip(packed, materials, strict=True):
        record["base_color"] = material.base_color
        record["emissive"] = material.emissive
        record["metallic"] = material.metallic
        record["roughness"] = material.roughness
        record["alpha_cutoff"] = 0.0 if material.opaque else material.alpha_cutoff
        record["base_color_texture"] = material.base_color_texture
        record["metallic_roughness_texture"] = material.metallic_roughness_texture
        record["flags"] = records.MATERIAL_OPAQUE * material.opaque | (
            records.MATERIAL_DOUBLE_SIDED * material.double_sided
        )
    return packed


def _pack_textures(textures: Sequence[Texture]) -> tuple[NDArray[Any], U32]:
    table = np.zeros(max(len(textures), 1), records.TEXTURE.dtype)
    if not textures:
        table[0] = (0, 1, 1, 1, 0, (0, 0, 0))
        return table, np.array([0xFFFFFFFF], np.uint32)
    texels: list[U32] = []
    first = 0
    for record, texture in zip(table, textures, strict=True):
        levels = mip_chain(texture)
        record["first_texel"] = first
        record["height"], record["width"] = texture.pixels.shape[:2]
        record["mip_count"] = len(levels)
        record["flags"] = (
            records.TEXTURE_SRGB * texture.srgb
            | _WRAP[texture.wrap_u] << 1
            | _WRAP[texture.wrap_v] << 3
        )
        for level in levels:
            texels.append(np.ascontiguousarray(level).view("<u4").reshape(-1))
            first += len(texels[-1])
    return table, np.concatenate(texels)
