"""Twin of gbuffer.wgsl: what the G-buffer holds and the order of lanes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.twins.octahedral import decode_normal, encode_normal
from passes.twins.wgsl_functions import (
    F32,
    U32,
    Index,
    clamp,
    pack_4x8_unorm,
    unpack_4x8_unorm,
    vector,
)

NOTHING = np.uint32(0xFFFFFFFF)  # object of a pixel that sees the sky
TILE = 8


@dataclass(frozen=True, slots=True)
class GBufferSurface:
    """Arrays over lanes: [n, 3] vectors and colours, [n] numbers."""

    shading_normal: F32
    geometric_normal: F32
    base_color: F32
    material: U32
    roughness: F32
    metalness: F32


def pack_surface(s: GBufferSurface) -> U32:
    """[n, 4]"""
    root = np.sqrt(clamp(s.base_color, 0.0, 1.0))
    color = pack_4x8_unorm(vector(root[:, 0], root[:, 1], root[:, 2], 1.0))
    rough_metal = pack_4x8_unorm(vector(s.roughness, s.metalness, 0.0, 0.0))
    last = (s.material & np.uint32(0xFFFF)) | (rough_metal << np.uint32(16))
    return np.stack(
        [encode_normal(s.shading_normal), encode_normal(s.geometric_normal), color, last], -1
    )


def unpack_surface(words: U32) -> GBufferSurface:
    """`words` [n, 4]"""
    color = unpack_4x8_unorm(words[:, 2])[:, :3]
    rough_metal = unpack_4x8_unorm(words[:, 3] >> np.uint32(16))
    return GBufferSurface(
        decode_normal(words[:, 0]),
        decode_normal(words[:, 1]),
        color * color,
        words[:, 3] & np.uint32(0xFFFF),
        rough_metal[:, 0],
        rough_metal[:, 1],
    )


@dataclass(frozen=True, slots=True)
class Pixels:
    """The picture's pixels in the order of the lanes that handle them, [n] each."""

    x: Index
    y: Index
    index: U32  # y * width + x

    def __getitem__(self, lanes: Any) -> "Pixels":
        return Pixels(self.x[lanes], self.y[lanes], self.index[lanes])


def tile_pixels(frame: Any) -> Pixels:
    """8x8 tiles row by row, the pixels of a tile row by row; lanes outside left out."""
    width, height = int(frame["width"]), int(frame["height"])
    across, down = -(-width // TILE), -(-height // TILE)
    group_y, group_x, lane_y, lane_x = (
        a.ravel() for a in np.indices((down, across, TILE, TILE), np.int64)
    )
    x, y = group_x * TILE + lane_x, group_y * TILE + lane_y
    inside = (x < width) & (y < height)
    x, y = x[inside], y[inside]
    return Pixels(x, y, (y * width + x).astype(np.uint32))
