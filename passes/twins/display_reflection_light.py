"""Twin of display_reflection_light.wgsl: what pixels were shown of reflections, tone-mapped."""

from typing import Any

import numpy as np

from passes.twins.gbuffer import tile_pixels
from passes.twins.reflection_block import sends_reflection
from passes.twins.tone_map import linear_to_srgb, tone_map, unpack_radiance
from passes.twins.wgsl_functions import U32, store_unorm


def display_reflection_light(
    frame: Any, visibility: U32, surface: U32, reflection_light: U32, shown: Any
) -> None:
    pixels = tile_pixels(frame)
    sent = sends_reflection(frame, visibility, surface)[pixels.y, pixels.x]
    radiance = unpack_radiance(reflection_light[pixels.index])
    radiance = np.where(sent[:, None], radiance, np.float32(0.0))
    store_unorm(shown, pixels, linear_to_srgb(tone_map(radiance * frame["exposure"])))
