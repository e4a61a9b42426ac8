"""Twin of display_reflection.wgsl: what reflection rays brought, tone-mapped."""

from typing import Any

import numpy as np

from passes.twins.gbuffer import NOTHING, tile_pixels, unpack_surface
from passes.twins.tone_map import linear_to_srgb, tone_map, unpack_radiance
from passes.twins.wgsl_functions import U32, store_unorm


def display_reflection(
    frame: Any, visibility: U32, surface: U32, reflected: U32, shadow_results: U32, shown: Any
) -> None:
    pixels = tile_pixels(frame)
    s = unpack_surface(surface[pixels.y, pixels.x])
    sent = visibility[pixels.y, pixels.x, 0] != NOTHING
    sent &= s.roughness <= frame["roughness_cutoff"]
    r = reflected[pixels.index]
    lit = shadow_results.reshape(-1, 2)[pixels.index, 1].astype(np.float32)
    with np.errstate(all="ignore"):  # what was never written may be anything
        radiance = unpack_radiance(r[:, :2]) + unpack_radiance(r[:, 2:]) * lit[:, None]
    radiance = np.where(sent[:, None], radiance, np.float32(0.0))
    store_unorm(shown, pixels, linear_to_srgb(tone_map(radiance * frame["exposure"])))
