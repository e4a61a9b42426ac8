"""Twin of sent_weight.wgsl: what the light of a reflected direction is weighed by."""

import numpy as np

from passes.twins.brdf import (
    MIRROR_ROUGHNESS,
    fresnel,
    reflectance_at_normal,
    reflection_weight,
    specular_albedo,
)
from passes.twins.gbuffer import GBufferSurface
from passes.twins.wgsl_functions import F32, dot

LEAST_F0 = np.float32(0.02)


def lobe_albedo(f0: F32, roughness: F32, n_v: F32) -> F32:
    """[n, 3]"""
    mirror = (roughness < MIRROR_ROUGHNESS)[:, None]
    return np.where(mirror, fresnel(f0, n_v), specular_albedo(f0, roughness, n_v))


def sent_weight(s: GBufferSurface, view: F32, direction: F32, *, without_color: bool) -> F32:
    """[n, 3]"""
    normal = s.shading_normal
    if not without_color:
        return reflection_weight(s.base_color, s.metalness, s.roughness, normal, view, direction)
    f0 = np.maximum(reflectance_at_normal(s.base_color, s.metalness), LEAST_F0)
    n_v = np.maximum(dot(normal, view), np.float32(1.0e-4))
    white = np.ones_like(s.metalness)
    weight = reflection_weight(f0, white, s.roughness, normal, view, direction)
    return np.asarray(weight / lobe_albedo(f0, s.roughness, n_v))


def shown_weight(s: GBufferSurface, view: F32) -> F32:
    """[n, 3]"""
    n_v = np.maximum(dot(s.shading_normal, view), np.float32(1.0e-4))
    return lobe_albedo(reflectance_at_normal(s.base_color, s.metalness), s.roughness, n_v)
