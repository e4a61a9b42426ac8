"""Twin of light_reflection.wgsl: what each pixel is shown of reflections as light of its own."""

from typing import Any

import numpy as np

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.camera import camera_direction
from passes.twins.gbuffer import NOTHING, Pixels, tile_pixels, unpack_surface
from passes.twins.reflected import reflected_distance, reflected_radiance
from passes.twins.reflection_block import reflection_pixels
from passes.twins.rough_radiance import rough_radiance
from passes.twins.surface_albedo import surface_albedo
from passes.twins.tone_map import MISS_DISTANCE, pack_radiance
from passes.twins.wgsl_functions import F32, U32, Flags, normalize


def sends(frame: Any, visibility: U32, surface: U32, pixels: Pixels) -> Flags:
    """[n]"""
    smooth = unpack_surface(surface[pixels.y, pixels.x]).roughness <= frame["roughness_cutoff"]
    return np.asarray((visibility[pixels.y, pixels.x, 0] != NOTHING) & smooth)


@np.errstate(all="ignore")
def light_reflection(
    frame: Any,
    visibility: U32,
    surface: U32,
    reflected: U32,
    shadow_results: U32,
    reflection_light: U32,
    depth: F32,
    probe: F32,
    *,
    reflection_block: int = 1,
    fallback: str = "environment",
    slots: ShadowSlots = ONE_RAY,
) -> None:
    """Writes `reflection_light` [pixels, 2]."""
    pixels = tile_pixels(frame)
    radiance = np.zeros((len(pixels.index), 3), np.float32)
    distance = np.full(len(radiance), MISS_DISTANCE)
    covered = np.flatnonzero(visibility[pixels.y, pixels.x, 0] != NOTHING)
    here = pixels[covered]
    s = unpack_surface(surface[here.y, here.x])
    view = normalize(-camera_direction(frame, here.x, here.y))
    rough = rough_radiance(frame, s, view, here, depth, probe, fallback)
    radiance[covered] = surface_albedo(s, view) * rough
    sender = reflection_pixels(frame, pixels, reflection_block)
    sent = sends(frame, visibility, surface, pixels) & sends(frame, visibility, surface, sender)
    index = sender.index[sent]
    radiance[sent] = reflected_radiance(slots, reflected, shadow_results, index)
    distance[sent] = reflected_distance(slots, reflected, index)
    reflection_light[pixels.index] = pack_radiance(radiance, distance)
