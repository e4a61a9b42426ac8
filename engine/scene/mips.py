"""Mip chains of RGBA8 textures: a box filter in linear light, alpha filtered as stored.

Level l has max(1, w >> l) x max(1, h >> l) texels. An odd size is filtered with three weighted
taps, so that no texel is dropped and none counts twice (NVIDIA, "Non-Power-of-Two Mipmapping").
"""

import numpy as np

from engine.scene.material import Texture
from engine.scene.mesh import F32, U8


def _srgb_table() -> F32:
    code = np.arange(256) / 255.0
    linear = np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)
    return linear.astype(np.float32)


SRGB_TO_LINEAR = _srgb_table()  # [256] linear value of an sRGB byte (IEC 61966-2-1)


def linear_to_srgb_bytes(linear: F32) -> U8:
    """The nearest sRGB byte of linear values in 0..1."""
    value = linear.clip(0, 1)
    coded = np.where(value <= 0.0031308, value * 12.92, 1.055 * value ** (1 / 2.4) - 0.055)
    return np.rint(coded * 255).astype(np.uint8)


def mip_chain(texture: Texture) -> list[U8]:
    """Every level [h, w, 4], the largest first, the last one 1 x 1."""
    levels = [texture.pixels]
    color: F32 = texture.pixels.astype(np.float32) / np.float32(255)
    if texture.srgb:
        color[..., :3] = SRGB_TO_LINEAR[texture.pixels[..., :3]]
    while color.shape[0] > 1 or color.shape[1] > 1:
        color = _halve(_halve(color, 0), 1)
        stored = np.rint(color * 255).astype(np.uint8)
        if texture.srgb:
            stored[..., :3] = linear_to_srgb_bytes(color[..., :3])
        levels.append(stored)
    return levels


def _halve(values: F32, axis: int) -> F32:
    size = values.shape[axis]
    half = size // 2
    if half == 0:
        return values
    moved = np.moveaxis(values, axis, 0)
    if size % 2 == 0:
        result = (moved[0::2] + moved[1::2]) * np.float32(0.5)
    else:
        i = np.arange(half, dtype=np.float32).reshape(-1, 1, 1)
        left = (half - i) * moved[0:-1:2]
        middle = np.float32(half) * moved[1::2]
        result = (left + middle + (i + 1) * moved[2::2]) / np.float32(size)
    return np.moveaxis(result, 0, axis)
