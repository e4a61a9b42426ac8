"""Twin of reflected.wgsl: what a pixel's own reflection ray brought."""

from passes.shadow_slots import ShadowSlots
from passes.twins.shadow_slot import reflected_light_place, reflected_place, shadow_slot
from passes.twins.shadow_visibility import shadow_visibility
from passes.twins.tone_map import unpack_radiance
from passes.twins.wgsl_functions import F32, U32, unpack_2x16_float


def reflected_radiance(slots: ShadowSlots, reflected: U32, shadow_results: U32, index: U32) -> F32:
    """[n, 3] for pixels `index` [n]; of what was never written anything."""
    words = reflected.reshape(-1, 2)
    total = unpack_radiance(words[reflected_place(slots, index)])
    for kind in range(1, 1 + slots.bounces):
        for number in range(slots.rays):
            found = shadow_results[shadow_slot(slots, index, kind, number)]
            light = words[reflected_light_place(slots, index, kind, number)]
            total = total + unpack_radiance(light) * shadow_visibility(slots, found)[:, None]
    return total


def reflected_distance(slots: ShadowSlots, reflected: U32, index: U32) -> F32:
    """[n]"""
    return unpack_2x16_float(reflected.reshape(-1, 2)[reflected_place(slots, index), 1])[:, 1]
