"""Twin of reflected.wgsl: what a pixel is shown of what reflection rays brought."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.twins.gbuffer import NOTHING, Pixels, unpack_surface
from passes.twins.reflection_block import reflection_pixels
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
    frame: Any, reflected: U32, shadow_results: U32, pixels: Pixels, block: int
) -> F32:
    """[n, 3]; of what was never written anything."""
    sender = reflection_pixels(frame, pixels, block)
    r = reflected[sender.index]
    lit = shadow_results.reshape(-1, 2)[sender.index, 1].astype(np.float32)
    return unpack_radiance(r[:, :2]) + unpack_radiance(r[:, 2:]) * lit[:, None]
