"""Twin of accept_alpha.wgsl: the alpha test of candidates on non-opaque triangles."""

import numpy as np

from engine.scene.records import TEXTURE_SRGB
from passes.alpha import ALPHA_TRIANGLE, RECORD_WORDS
from passes.twins.textures import TextureRecord, sample_texture
from passes.twins.wgsl_functions import F32, U32, Flags


def alpha_samples(alpha: U32, object: U32, primitive: U32) -> Flags:
    """[n] which candidates' tests sample a texture."""
    first = alpha[object].astype(np.int64)
    at = first + primitive.astype(np.int64) * RECORD_WORDS
    place = ALPHA_TRIANGLE.offsets["texture"] // 4
    return np.asarray((first != 0) & (alpha[np.where(first, at + place, 0)].view(np.int32) >= 0))


def accept_candidate(alpha: U32, texels: U32, object: U32, primitive: U32, u: F32, v: F32) -> Flags:
    """[n] which candidates are hits."""
    first = alpha[object].astype(np.int64)
    accepted = first == 0  # an opaque material forced non-opaque by a flag
    lanes = np.flatnonzero(~accepted)
    at = first[lanes] + primitive[lanes].astype(np.int64) * RECORD_WORDS
    words = alpha[at[:, None] + np.arange(RECORD_WORDS)]
    record = words.view(ALPHA_TRIANGLE.dtype)[:, 0]
    u, v = u[lanes], v[lanes]
    w = np.float32(1.0) - u - v
    a = record["alpha"]
    value = a[:, 0] + u * (a[:, 1] - a[:, 0]) + v * (a[:, 2] - a[:, 0])
    uvs = record["uv"].reshape(-1, 3, 2)
    uv = w[:, None] * uvs[:, 0] + u[:, None] * uvs[:, 1] + v[:, None] * uvs[:, 2]
    seen = np.flatnonzero(record["texture"] >= 0)
    texture = TextureRecord(
        first_texel=record["first_texel"][seen],
        width=record["width"][seen],
        height=record["height"][seen],
        mip_count=np.ones(len(seen), np.uint32),
        flags=record["flags"][seen] & ~np.uint32(TEXTURE_SRGB),
    )
    zero = np.zeros(len(seen), np.float32)
    value[seen] *= sample_texture(texels, texture, uv[seen], zero)[:, 3]
    accepted[lanes] = value >= record["cutoff"]
    return accepted
