"""Twin of tone_map.wgsl: radiance as it is stored, and what a screen shows of it."""

from typing import Any

import numpy as np

from passes.twins.wgsl_functions import F32, U32, clamp, pack_2x16_float, unpack_2x16_float, vector

MISS_DISTANCE = np.float32(65504.0)


def pack_radiance(c: F32, w: Any) -> U32:
    """[n, 3] and a number or [n] -> [n, 2]"""
    clamped = np.minimum(c, np.float32(6.0e4))
    return np.stack(
        [pack_2x16_float(clamped[:, :2]), pack_2x16_float(vector(clamped[:, 2], w))], -1
    )


def unpack_radiance(words: U32) -> F32:
    """[n, 2] -> [n, 3]"""
    return np.concatenate(
        [unpack_2x16_float(words[:, 0]), unpack_2x16_float(words[:, 1])[:, :1]], -1
    )


def tone_map(c: F32) -> F32:
    curve: Any = c * (2.51 * c + 0.03) / (c * (2.43 * c + 0.59) + np.float32(0.14))
    return clamp(curve, 0.0, 1.0)


def linear_to_srgb(c: F32) -> F32:
    curve = np.float32(1.055) * np.power(c, np.float32(1.0 / 2.4)) - np.float32(0.055)
    return np.where(c <= np.float32(0.0031308), np.float32(12.92) * c, curve)
