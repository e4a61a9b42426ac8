"""Twin of display_reflection.wgsl: what reflection rays brought, tone-mapped."""

from typing import Any

import numpy as np

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.gbuffer import tile_pixels
from passes.twins.reflected import reflected_radiance
from passes.twins.reflection_block import sends_reflection
from passes.twins.tone_map import linear_to_srgb, tone_map
from passes.twins.wgsl_functions import U32, store_unorm


def display_reflection(
    frame: Any,
    visibility: U32,
    surface: U32,
    reflected: U32,
    shadow_results: U32,
    shown: Any,
    *,
    slots: ShadowSlots = ONE_RAY,
) -> None:
    pixels = tile_pixels(frame)
    sent = sends_reflection(frame, visibility, surface)[pixels.y, pixels.x]
    with np.errstate(all="ignore"):  # what was never written may be anything
        radiance = reflected_radiance(slots, reflected, shadow_results, pixels.index)
    radiance = np.where(sent[:, None], radiance, np.float32(0.0))
    store_unorm(shown, pixels, linear_to_srgb(tone_map(radiance * frame["exposure"])))
