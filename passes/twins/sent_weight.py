"""Twin of sent_weight.wgsl: what the light of a reflected direction is weighed by."""

import numpy as np

from passes.twins.brdf import reflectance_at_normal, reflection_weight
from passes.twins.gbuffer import GBufferSurface
from passes.twins.specular_albedo import specular_albedo
from passes.twins.wgsl_functions import F32, U32, dot

LEAST_F0 = np.float32(0.02)


def sent_weight(
    lobe_table: U32, s: GBufferSurface, view: F32, direction: F32, *, without_color: bool
) -> F32:
    """[n, 3]"""
    normal = s.shading_normal
    if not without_color:
        return reflection_weight(s.base_color, s.metalness, s.roughness, normal, view, direction)
    f0 = np.maximum(reflectance_at_normal(s.base_color, s.metalness), LEAST_F0)
    n_v = np.maximum(dot(normal, view), np.float32(1.0e-4))
    white = np.ones_like(s.metalness)
    weight = reflection_weight(f0, white, s.roughness, normal, view, direction)
    return np.asarray(weight / specular_albedo(lobe_table, f0, s.roughness, n_v))


def shown_weight(lobe_table: U32, s: GBufferSurface, view: F32) -> F32:
    """[n, 3]"""
    n_v = np.maximum(dot(s.shading_normal, view), np.float32(1.0e-4))
    f0 = reflectance_at_normal(s.base_color, s.metalness)
    return specular_albedo(lobe_table, f0, s.roughness, n_v)
