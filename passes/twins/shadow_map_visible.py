"""Twin of shadow_map_visible.wgsl: what visible surfaces see of lights, by shadow maps."""

from typing import Any

import numpy as np

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.gbuffer import tile_pixels
from passes.twins.light import is_black
from passes.twins.sampled_visibility import sampled_visibility
from passes.twins.shadow_slot import direct_place, shadow_slot
from passes.twins.surface import surface_point
from passes.twins.tone_map import unpack_radiance
from passes.twins.wgsl_functions import F32, U32, to_float


@np.errstate(all="ignore")
def shadow_map_visible(
    frame: Any,
    tables: U32,
    geometry: U32,
    visibility: U32,
    shadow_map: F32,
    direct: U32,
    shadow_results: U32,
    *,
    slots: ShadowSlots = ONE_RAY,
) -> None:
    """Writes `shadow_results` of visible surfaces, where their sampled points of lights lie."""
    everywhere = tile_pixels(frame)
    words = direct.reshape(-1, 2)
    for number in range(slots.rays):
        sent = unpack_radiance(words[direct_place(slots, everywhere.index, number)])
        dark = everywhere[is_black(sent)]
        shadow_results[shadow_slot(slots, dark.index, 0, number)] = 0
        pixels = everywhere[~is_black(sent)]
        seen = visibility[pixels.y, pixels.x]
        u, v = to_float(seen[:, 2]), to_float(seen[:, 3])
        point = surface_point(frame, tables, geometry, seen[:, 0], seen[:, 1], u, v)
        slot = shadow_slot(slots, pixels.index, 0, number)
        shadow_results[slot] = sampled_visibility(frame, shadow_map, shadow_results[slot], point)
