"""Twin of specular_albedo.wgsl: the albedo of the specular lobe."""

import numpy as np

from passes.lobe_table import CELLS, STEPS
from passes.twins.brdf import MIRROR_ROUGHNESS, fresnel
from passes.twins.wgsl_functions import F32, U32, clamp, mix, unpack_2x16_unorm, vector

ONE_BITS = np.float32(1.0).view(np.int32)


def specular_albedo(lobe_table: U32, f0: F32, roughness: F32, n_v: F32) -> F32:
    """[n, 3]; `lobe_table` as of passes.lobe_table.lobe_cells."""
    cells, steps = np.array(CELLS, np.float32), np.array(STEPS, np.float32)
    bits = vector(n_v, roughness).view(np.int32) - ONE_BITS
    octaves = bits.astype(np.float32) * np.float32(2.0**-23)
    place = clamp(cells + steps * octaves, 0.0, cells)
    cell = np.minimum(np.floor(place), cells - np.float32(1.0))
    part = (place - cell)[..., None]
    x, y = cell.astype(np.int64).T
    corners = unpack_2x16_unorm(lobe_table[y, x])
    low = mix(corners[:, 0], corners[:, 1], part[:, 0])
    high = mix(corners[:, 2], corners[:, 3], part[:, 0])
    scale, bias = mix(low, high, part[:, 1]).T
    found = f0 * scale[:, None] + bias[:, None]
    return np.where((roughness < MIRROR_ROUGHNESS)[:, None], fresnel(f0, n_v), found)
