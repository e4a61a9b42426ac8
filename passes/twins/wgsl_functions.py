"""WGSL's built-in functions over arrays of lanes (WGSL specification, "Built-in Functions").

Scalars are [n], vectors [n, k]; a vector that is the same in all lanes may be [k]. Sums run from
the first component to the last, each operation rounded on its own. A driver may fuse or reorder
them, and its `pow`, `exp2`, `sqrt`, `sin` may be a few ULPs off. Packing rounds halves to even, as
drivers do: WGSL's text rounds them up, SPIR-V leaves them open.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


def dot(a: F32, b: F32) -> F32:
    """Over the last axis."""
    total = a[..., 0] * b[..., 0]
    for k in range(1, max(a.shape[-1], b.shape[-1])):
        total = total + a[..., k] * b[..., k]
    return np.asarray(total)


def length(a: F32) -> F32:
    return np.asarray(np.sqrt(dot(a, a)))


def normalize(a: F32) -> F32:
    return np.asarray(a / length(a)[..., None])


def inverse_sqrt(a: F32) -> F32:
    return np.asarray(np.float32(1.0) / np.sqrt(a))


def cross(a: F32, b: F32) -> F32:
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.stack(parts, -1)


def mix(a: F32, b: F32, t: F32) -> F32:
    return np.asarray(a * (np.float32(1.0) - t) + b * t)


def clamp(a: F32, low: Any, high: Any) -> F32:
    return np.asarray(np.minimum(np.maximum(a, low), high), np.float32)


def reflect(a: F32, normal: F32) -> F32:
    return np.asarray(a - 2.0 * dot(normal, a)[..., None] * normal)


def vector(*components: Any) -> F32:
    """[n, k] from k components, of which one at least is [n]."""
    return np.stack(np.broadcast_arrays(*(np.asarray(c, np.float32) for c in components)), -1)


def to_float(words: U32) -> F32:
    """bitcast<f32>"""
    return np.ascontiguousarray(words, np.uint32).view(np.float32)


def to_words(values: F32) -> U32:
    """bitcast<u32>"""
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def pack_4x8_unorm(values: F32) -> U32:
    """[n, 4] -> [n]"""
    code = np.rint(np.float32(255.0) * clamp(values, 0.0, 1.0)).astype(np.uint32)
    shifts = np.array([0, 8, 16, 24], np.uint32)
    return np.asarray(np.bitwise_or.reduce(code << shifts, axis=-1))


def unpack_4x8_unorm(words: U32) -> F32:
    """[n] -> [n, 4]"""
    shifts = np.array([0, 8, 16, 24], np.uint32)
    code = (words[..., None] >> shifts) & np.uint32(0xFF)
    return np.asarray(code.astype(np.float32) / np.float32(255.0))


def pack_2x16_unorm(values: F32) -> U32:
    """[n, 2] -> [n]"""
    code = np.rint(np.float32(65535.0) * clamp(values, 0.0, 1.0)).astype(np.uint32)
    return np.asarray(code[..., 0] | (code[..., 1] << np.uint32(16)))


def unpack_2x16_unorm(words: U32) -> F32:
    """[n] -> [n, 2]"""
    code = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], -1)
    return np.asarray(code.astype(np.float32) / np.float32(65535.0))


def pack_2x16_snorm(values: F32) -> U32:
    """[n, 2] -> [n]"""
    code = np.rint(np.float32(32767.0) * clamp(values, -1.0, 1.0)).astype(np.int32)
    half = code.view(np.uint32) & np.uint32(0xFFFF)
    return np.asarray(half[..., 0] | (half[..., 1] << np.uint32(16)))


def unpack_2x16_snorm(words: U32) -> F32:
    """[n] -> [n, 2]"""
    halves = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], -1)
    code = halves.astype(np.uint16).view(np.int16).astype(np.float32)
    return np.asarray(np.maximum(code / np.float32(32767.0), np.float32(-1.0)))


def pack_2x16_float(values: F32) -> U32:
    """[n, 2] -> [n]; rounds to the nearest float16, where WGSL lets a driver truncate."""
    halves = values.astype(np.float16).view(np.uint16).astype(np.uint32)
    return np.asarray(halves[..., 0] | (halves[..., 1] << np.uint32(16)))


def unpack_2x16_float(words: U32) -> F32:
    """[n] -> [n, 2]"""
    halves = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], -1)
    return np.asarray(halves.astype(np.uint16).view(np.float16).astype(np.float32))


def store_unorm(texture: Any, pixels: Any, colors: F32) -> None:
    """textureStore of opaque colours [n, 3] at lanes' `pixels` (x, y) into rgba8unorm, U8 [height,
    width, 4]; into F32 the same steps of 1/255 before they are rounded."""
    opaque = vector(colors[:, 0], colors[:, 1], colors[:, 2], 1.0)
    steps = np.float32(255.0) * clamp(opaque, 0.0, 1.0)
    texture[pixels.y, pixels.x] = steps if texture.dtype == np.float32 else np.rint(steps)
