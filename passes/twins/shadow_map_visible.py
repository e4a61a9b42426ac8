"""Twin of shadow_map_visible.wgsl: what visible surfaces see of the light, by its shadow map."""

from typing import Any

import numpy as np

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.gbuffer import tile_pixels
from passes.twins.light import is_black
from passes.twins.sample_light import sample_light
from passes.twins.sampling import light_dimension
from passes.twins.shadow_map import map_visibility, pack_visibility
from passes.twins.shadow_slot import direct_place, shadow_slot
from passes.twins.surface import surface_point
from passes.twins.tone_map import unpack_radiance
from passes.twins.wgsl_functions import F32, U32, to_float, unpack_2x16_unorm


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
    """Writes `shadow_results` of visible surfaces."""
    everywhere = tile_pixels(frame)
    words = direct.reshape(-1, 2)
    for number in range(slots.rays):
        pixels = everywhere
        shadow_results[shadow_slot(slots, pixels.index, 0, number)] = 0
        sent = unpack_radiance(words[direct_place(slots, pixels.index, number)])
        pixels = pixels[~is_black(sent)]
        seen = visibility[pixels.y, pixels.x]
        u, v = to_float(seen[:, 2]), to_float(seen[:, 3])
        point = surface_point(frame, tables, geometry, seen[:, 0], seen[:, 1], u, v)
        first = np.zeros(len(seen), np.uint32)
        point_on_light = sample_light(
            frame, tables, pixels.index, light_dimension(0, number), first
        )
        jitter = unpack_2x16_unorm(point_on_light)
        lit = map_visibility(frame, shadow_map, point.position, point.geometric_normal, jitter)
        shadow_results[shadow_slot(slots, pixels.index, 0, number)] = pack_visibility(lit)
