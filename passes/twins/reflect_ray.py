"""Twin of reflect_ray.wgsl: the direction of a reflection ray."""

import numpy as np

from passes.twins.brdf import MIRROR_ROUGHNESS
from passes.twins.sampling import basis, sample_visible_normal
from passes.twins.wgsl_functions import F32, Flags, dot, normalize, vector


def reflect_ray(
    view: F32, normal: F32, geometric_normal: F32, roughness: F32, r1: F32, r2: F32
) -> tuple[F32, Flags, Flags]:
    """[n, 3] directions, and [n] whether they were raised above the horizon or are lost."""
    b = basis(normal)
    local = vector(dot(view, b.tangent), dot(view, b.bitangent), dot(view, normal))
    h = sample_visible_normal(local, roughness * roughness, r1, r2)
    sampled = h[:, :1] * b.tangent + h[:, 1:2] * b.bitangent + h[:, 2:] * normal
    half_vector = np.where((roughness >= MIRROR_ROUGHNESS)[:, None], sampled, normal)
    mirrored = np.float32(2.0) * dot(view, half_vector)[:, None] * half_vector - view
    direction = normalize(mirrored)
    height = dot(direction, geometric_normal)
    lift = np.float32(1.0e-4) - np.float32(2.0) * height
    up = normalize(direction + lift[:, None] * geometric_normal)
    lost = (roughness >= MIRROR_ROUGHNESS) & (dot(direction, normal) <= 0.0)
    raised = ~lost & ~(height > 0.0)
    return np.where(raised[:, None], up, direction), raised, lost
