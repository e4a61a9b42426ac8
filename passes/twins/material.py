"""Twin of material.wgsl: material parameters at a surface point, textures included."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.scene.records import MATERIAL, TEXTURE
from passes.twins.surface import SurfacePoint
from passes.twins.textures import TextureRecord, sample_texture
from passes.twins.wgsl_functions import F32, U32, Index, to_float

MATERIAL_VEC4S = MATERIAL.size // 16
TEXTURE_VEC4S = TEXTURE.size // 16


@dataclass(frozen=True, slots=True)
class SurfaceMaterial:
    """[n, 3] colours, [n] numbers; `fetches`: textures sampled."""

    base_color: F32
    metalness: F32
    roughness: F32
    emissive: F32
    fetches: U32


def texture_at(frame: Any, tables: U32, index: Index) -> TextureRecord:
    at = int(frame["texture_base"]) + index * TEXTURE_VEC4S
    first_texel, width, height, mip_count = tables[at].T
    return TextureRecord(first_texel, width, height, mip_count, tables[at + 1, 0])


def mip_level(record: TextureRecord, uv_density: F32, cone_width: F32, cosine: F32) -> F32:
    texels_across = uv_density * np.sqrt((record.width * record.height).astype(np.float32))
    across = texels_across * cone_width / np.maximum(cosine, np.float32(0.05))
    return np.asarray(np.log2(np.maximum(across, np.float32(1.0e-6))))


def material_at(
    frame: Any, tables: U32, texels: U32, point: SurfacePoint, cone_width: F32, cosine: F32
) -> SurfaceMaterial:
    at = int(frame["material_base"]) + point.material.astype(np.int64) * MATERIAL_VEC4S
    records = tables[at[:, None] + np.arange(3)]
    return material_of(frame, tables, texels, records, point, cone_width, cosine)


def material_of(
    frame: Any,
    tables: U32,
    texels: U32,
    records: U32,
    point: SurfacePoint,
    cone_width: F32,
    cosine: F32,
) -> SurfaceMaterial:
    """From the first three vec4s of each material's record, [n, 3, 4]."""
    floats = to_float(records)
    third = records[:, 2]
    color = floats[:, 0, :3] * point.color[:, :3]
    metalness = floats[:, 1, 3].copy()
    roughness = to_float(third[:, 0]).copy()
    textures = np.ascontiguousarray(third[:, 2:]).view(np.int32)
    fetches = np.zeros(len(records), np.uint32)

    def sample(slot: int) -> tuple[Index, F32]:
        """The lanes whose texture `slot` exists and what they read there."""
        lanes = np.flatnonzero(textures[:, slot] >= 0)
        record = texture_at(frame, tables, textures[lanes, slot].astype(np.int64))
        lod = mip_level(record, point.uv_density[lanes], cone_width[lanes], cosine[lanes])
        fetches[lanes] += np.uint32(1)
        return lanes, sample_texture(texels, record, point.uv[lanes], lod)

    lanes, texel = sample(0)
    color[lanes] *= texel[:, :3]
    lanes, texel = sample(1)
    roughness[lanes] *= texel[:, 1]
    metalness[lanes] *= texel[:, 2]
    return SurfaceMaterial(color, metalness, roughness, floats[:, 1, :3], fetches)
