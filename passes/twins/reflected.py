"""Twin of reflected.wgsl: what a pixel is shown of what reflection rays brought."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.shadow_slots import ShadowSlots
from passes.twins.gbuffer import NOTHING, Pixels, unpack_surface
from passes.twins.reflection_block import reflection_pixels
from passes.twins.shadow_slot import reflected_light_place, reflected_place, shadow_slot
from passes.twins.tone_map import unpack_radiance
from passes.twins.wgsl_functions import F32, U32


def has_reflection(
    frame: Any, visibility: U32, surface: U32, pixels: Pixels, block: int
) -> NDArray[np.bool_]:
    """[n] whether the pixel whose ray each one shares has sent it."""
    sender = reflection_pixels(frame, pixels, block)
    smooth = unpack_surface(surface[sender.y, sender.x]).roughness <= frame["roughness_cutoff"]
    return np.asarray((visibility[sender.y, sender.x, 0] != NOTHING) & smooth)


def reflected_radiance(
    frame: Any,
    reflected: U32,
    shadow_results: U32,
    pixels: Pixels,
    block: int,
    slots: ShadowSlots,
) -> F32:
    """[n, 3]; of what was never written anything."""
    sender = reflection_pixels(frame, pixels, block)
    words = reflected.reshape(-1, 2)
    total = unpack_radiance(words[reflected_place(slots, sender.index)])
    for kind in range(1, 1 + slots.bounces):
        for number in range(slots.rays):
            lit = shadow_results[shadow_slot(slots, sender.index, kind, number)]
            light = words[reflected_light_place(slots, sender.index, kind, number)]
            total = total + unpack_radiance(light) * lit.astype(np.float32)[:, None]
    return total
