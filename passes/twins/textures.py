"""Twin of textures.wgsl: bilinear samples within one mip level."""

from dataclasses import dataclass

import numpy as np

from engine.scene.records import TEXTURE_SRGB, WRAP_CLAMP, WRAP_MIRROR
from passes.twins.wgsl_functions import F32, U32, Index, clamp, mix, unpack_4x8_unorm


@dataclass(frozen=True, slots=True)
class TextureRecord:
    """engine.scene.records.TEXTURE, one a lane, [n] each."""

    first_texel: U32
    width: U32
    height: U32
    mip_count: U32
    flags: U32


def wrap_coordinate(value: Index, size: Index, mode: U32) -> Index:
    clamped = np.clip(value, 0, size - 1)
    period = np.remainder(value, 2 * size)
    mirrored = np.where(period >= size, 2 * size - 1 - period, period)
    repeated = np.remainder(value, size)
    return np.where(mode == WRAP_CLAMP, clamped, np.where(mode == WRAP_MIRROR, mirrored, repeated))


def srgb_to_linear(c: F32) -> F32:
    curve = np.power((c + np.float32(0.055)) / np.float32(1.055), np.float32(2.4))
    return np.where(c <= np.float32(0.04045), c / np.float32(12.92), curve)


def load_texel(
    texels: U32, record: TextureRecord, first: Index, size: Index, x: Index, y: Index
) -> F32:
    """[n, 4]; `size` [n, 2]"""
    column = wrap_coordinate(x, size[:, 0], (record.flags >> np.uint32(1)) & np.uint32(3))
    row = wrap_coordinate(y, size[:, 1], (record.flags >> np.uint32(3)) & np.uint32(3))
    value = unpack_4x8_unorm(texels[first + row * size[:, 0] + column])
    color = np.where(
        (record.flags & np.uint32(TEXTURE_SRGB))[:, None] != 0,
        srgb_to_linear(value[:, :3]),
        value[:, :3],
    )
    return np.concatenate([color, value[:, 3:]], -1)


def sample_texture(texels: U32, record: TextureRecord, uv: F32, lod: F32) -> F32:
    """[n, 4] linear colour at `uv` [n, 2], from mip level round(lod)."""
    last = (record.mip_count - np.uint32(1)).astype(np.float32)
    level = clamp(lod + np.float32(0.5), np.float32(0.0), last).astype(np.int64)
    first = record.first_texel.astype(np.int64)
    size = np.stack([record.width, record.height], -1).astype(np.int64)
    for i in range(int(level.max(initial=0))):
        below = i < level
        first = np.where(below, first + size[:, 0] * size[:, 1], first)
        size = np.where(below[:, None], np.maximum(size >> 1, 1), size)
    sizes = size.astype(np.float32)
    at = (uv - 2.0 * np.floor(uv * np.float32(0.5))) * sizes - np.float32(0.5)
    clamped = uv * sizes - np.float32(0.5)
    modes = (record.flags[:, None] >> np.array([1, 3], np.uint32)) & np.uint32(3)
    p = np.where(modes == WRAP_CLAMP, clamped, at)
    corner = np.floor(p)
    weight = p - corner
    # A conversion to i32 stops at the ends of its range.
    x, y = clamp(corner, -(2.0**31), 2.0**31 - 128).astype(np.int64).T
    across, down = weight[:, :1], weight[:, 1:]

    def texel(dx: int, dy: int) -> F32:
        return load_texel(texels, record, first, size, x + dx, y + dy)

    top = mix(texel(0, 0), texel(1, 0), across)
    bottom = mix(texel(0, 1), texel(1, 1), across)
    return mix(top, bottom, down)
