"""Twin of surface_albedo.wgsl: the albedo of a visible surface's specular lobe."""

import numpy as np

from passes.twins.brdf import reflectance_at_normal, specular_albedo
from passes.twins.gbuffer import GBufferSurface
from passes.twins.wgsl_functions import F32, dot


def surface_albedo(s: GBufferSurface, view: F32) -> F32:
    """[n, 3]"""
    n_v = np.maximum(dot(s.shading_normal, view), np.float32(1.0e-4))
    return specular_albedo(reflectance_at_normal(s.base_color, s.metalness), s.roughness, n_v)
