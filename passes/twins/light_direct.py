"""Twin of light_direct.wgsl: the area light on visible surfaces as light of its own."""

from typing import Any

import numpy as np

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.direct import direct_radiance, light_visibility
from passes.twins.gbuffer import NOTHING, tile_pixels
from passes.twins.tone_map import pack_radiance
from passes.twins.wgsl_functions import U32


@np.errstate(all="ignore")
def light_direct(
    frame: Any,
    visibility: U32,
    direct: U32,
    shadow_results: U32,
    direct_light: U32,
    *,
    slots: ShadowSlots = ONE_RAY,
) -> None:
    """Writes `direct_light` [pixels, 2]."""
    pixels = tile_pixels(frame)
    index = pixels.index
    radiance = direct_radiance(slots, direct, shadow_results, index)
    light = pack_radiance(radiance, light_visibility(slots, direct, shadow_results, index))
    covered = visibility[pixels.y, pixels.x, 0] != NOTHING
    direct_light[index] = np.where(covered[:, None], light, np.uint32(0))
