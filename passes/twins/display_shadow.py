"""Twin of display_shadow.wgsl: the direct light that shadow rays let through, tone-mapped."""

from typing import Any

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.direct import direct_radiance
from passes.twins.gbuffer import tile_pixels
from passes.twins.tone_map import linear_to_srgb, tone_map
from passes.twins.wgsl_functions import U32, store_unorm


def display_shadow(
    frame: Any, direct: U32, shadow_results: U32, shown: Any, *, slots: ShadowSlots = ONE_RAY
) -> None:
    pixels = tile_pixels(frame)
    radiance = direct_radiance(slots, direct, shadow_results, pixels.index)
    store_unorm(shown, pixels, linear_to_srgb(tone_map(radiance * frame["exposure"])))
