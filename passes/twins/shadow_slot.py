"""Twin of shadow_slot.wgsl: where shadow rays and what they bring have their places."""

import numpy as np

from passes.shadow_slots import ShadowSlots
from passes.twins.wgsl_functions import U32


def shadow_slot(slots: ShadowSlots, pixel: U32, kind: int, number: int) -> U32:
    """[n] for `pixel` [n]."""
    first = pixel * np.uint32(1 + slots.bounces) + np.uint32(kind)
    return np.asarray(first * np.uint32(slots.rays) + np.uint32(number))


def direct_place(slots: ShadowSlots, pixel: U32, number: int) -> U32:
    return np.asarray(pixel * np.uint32(slots.rays) + np.uint32(number))


def reflected_place(slots: ShadowSlots, pixel: U32) -> U32:
    return np.asarray(pixel * np.uint32(1 + slots.bounces * slots.rays))


def reflected_light_place(slots: ShadowSlots, pixel: U32, kind: int, number: int) -> U32:
    behind = np.uint32(1 + (kind - 1) * slots.rays + number)
    return reflected_place(slots, pixel) + behind
