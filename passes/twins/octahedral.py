"""Twin of octahedral.wgsl: unit vectors in two 16-bit snorms."""

import numpy as np

from passes.twins.wgsl_functions import (
    F32,
    U32,
    dot,
    normalize,
    pack_2x16_snorm,
    unpack_2x16_snorm,
    vector,
)


def octahedral_fold(p: F32) -> F32:
    sign = np.where(p >= 0.0, np.float32(1.0), np.float32(-1.0))
    return np.asarray((np.float32(1.0) - np.abs(p[..., ::-1])) * sign)


def encode_normal(n: F32) -> U32:
    """[n, 3] -> [n]"""
    p = n[..., :2] / dot(np.abs(n), np.ones(3, np.float32))[..., None]
    return pack_2x16_snorm(np.where(n[..., 2:] >= 0.0, p, octahedral_fold(p)))


def decode_normal(code: U32) -> F32:
    """[n] -> [n, 3]"""
    p = unpack_2x16_snorm(code)
    z = np.float32(1.0) - np.abs(p[..., 0]) - np.abs(p[..., 1])
    xy = np.where(z[..., None] >= 0.0, p, octahedral_fold(p))
    return normalize(vector(xy[..., 0], xy[..., 1], z))
