"""Twin of shadow_map_reflection.wgsl: what reflection hits see of lights, by shadow maps."""

from typing import Any

import numpy as np

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.light import is_black
from passes.twins.queue_push import RayQueue
from passes.twins.sampled_visibility import sampled_visibility
from passes.twins.shadow_slot import reflected_light_place, shadow_slot
from passes.twins.surface import surface_point
from passes.twins.tone_map import unpack_radiance
from passes.twins.wgsl_functions import F32, U32


@np.errstate(all="ignore")
def shadow_map_reflection(
    frame: Any,
    queue: RayQueue,
    results: Any,
    tables: U32,
    geometry: U32,
    shadow_map: F32,
    reflected: U32,
    shadow_results: U32,
    *,
    slots: ShadowSlots = ONE_RAY,
    bounce: int = 1,
) -> None:
    """Writes `shadow_results` of the hits that light would reach, where their sampled points of
    lights lie."""
    count = queue.count
    every = queue.records["pixel"][:count]
    for number in range(slots.rays):
        light = reflected.reshape(-1, 2)[reflected_light_place(slots, every, bounce, number)]
        lit = np.flatnonzero(~is_black(unpack_radiance(light)))
        pixel, hit = every[lit], results[:count][lit]
        point = surface_point(
            frame, tables, geometry, hit["object"], hit["primitive"], hit["u"], hit["v"]
        )
        slot = shadow_slot(slots, pixel, bounce, number)
        shadow_results[slot] = sampled_visibility(frame, shadow_map, shadow_results[slot], point)
