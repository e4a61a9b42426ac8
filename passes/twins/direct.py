"""Twin of direct.wgsl: direct light on what a pixel sees, where shadow rays arrived."""

import numpy as np

from passes.shadow_slots import ShadowSlots
from passes.twins.shadow_slot import direct_place, shadow_slot
from passes.twins.shadow_visibility import shadow_visibility
from passes.twins.tone_map import unpack_radiance
from passes.twins.wgsl_functions import F32, U32


def light_visibility(slots: ShadowSlots, direct: U32, shadow_results: U32, pixel: U32) -> F32:
    """[n] for `pixel` [n]."""
    words = direct.reshape(-1, 2)
    sent, arrived = np.zeros((2, len(pixel)), np.float32)
    for number in range(slots.rays):
        is_sent = unpack_radiance(words[direct_place(slots, pixel, number)]).max(-1) > 0.0
        sent += is_sent
        found = shadow_visibility(slots, shadow_results[shadow_slot(slots, pixel, 0, number)])
        arrived += np.where(is_sent, found, np.float32(0.0))
    return np.asarray(arrived / np.maximum(sent, np.float32(1.0)))


def direct_radiance(slots: ShadowSlots, direct: U32, shadow_results: U32, pixel: U32) -> F32:
    """[n, 3] for `pixel` [n]."""
    words = direct.reshape(-1, 2)
    total = np.zeros((len(pixel), 3), np.float32)
    for number in range(slots.rays):
        lit = shadow_visibility(slots, shadow_results[shadow_slot(slots, pixel, 0, number)])
        total += unpack_radiance(words[direct_place(slots, pixel, number)]) * lit[:, None]
    return total
