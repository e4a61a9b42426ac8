"""Twin of surface_albedo.wgsl: the albedo of a visible surface's specular lobe."""

import numpy as np

from passes.twins.brdf import reflectance_at_normal
from passes.twins.gbuffer import GBufferSurface
from passes.twins.specular_albedo import specular_albedo
from passes.twins.wgsl_functions import F32, U32, dot


def surface_albedo(lobe_table: U32, s: GBufferSurface, view: F32) -> F32:
    """[n, 3]"""
    n_v = np.maximum(dot(s.shading_normal, view), np.float32(1.0e-4))
    f0 = reflectance_at_normal(s.base_color, s.metalness)
    return specular_albedo(lobe_table, f0, s.roughness, n_v)
