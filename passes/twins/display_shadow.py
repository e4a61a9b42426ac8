"""Twin of display_shadow.wgsl: the direct light that shadow rays let through, tone-mapped."""

from typing import Any

import numpy as np

from passes.twins.gbuffer import tile_pixels
from passes.twins.tone_map import linear_to_srgb, tone_map, unpack_radiance
from passes.twins.wgsl_functions import U32, store_unorm


def display_shadow(frame: Any, direct: U32, shadow_results: U32, shown: Any) -> None:
    pixels = tile_pixels(frame)
    lit = shadow_results.reshape(-1, 2)[pixels.index, 0].astype(np.float32)
    radiance = unpack_radiance(direct[pixels.index]) * lit[:, None]
    store_unorm(shown, pixels, linear_to_srgb(tone_map(radiance * frame["exposure"])))
