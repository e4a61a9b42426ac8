"""Twin of display_filtered.wgsl: a light as filters left it, tone-mapped."""

from typing import Any

from passes.twins.gbuffer import tile_pixels
from passes.twins.tone_map import linear_to_srgb, tone_map, unpack_radiance
from passes.twins.wgsl_functions import U32, store_unorm


def display_filtered(frame: Any, filtered: U32, shown: Any) -> None:
    pixels = tile_pixels(frame)
    radiance = unpack_radiance(filtered[pixels.index])
    store_unorm(shown, pixels, linear_to_srgb(tone_map(radiance * frame["exposure"])))
