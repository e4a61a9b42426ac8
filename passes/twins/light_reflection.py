"""Twin of light_reflection.wgsl: what each pixel is shown of reflections as light of its own."""

from typing import Any

import numpy as np

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.camera import camera_direction
from passes.twins.gbuffer import NOTHING, tile_pixels, unpack_surface
from passes.twins.queue_push import RayQueue
from passes.twins.reflected import reflected_distance, reflected_radiance
from passes.twins.reflection_block import reflection_senders, sender_for
from passes.twins.rough_radiance import rough_radiance
from passes.twins.sent_weight import shown_weight
from passes.twins.surface_albedo import surface_albedo
from passes.twins.tone_map import MISS_DISTANCE, pack_radiance
from passes.twins.upsample import SentLight
from passes.twins.wgsl_functions import F32, U32, normalize

NO_DISTANCE = np.float32(1.0e-4)


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
    reflection_queue: RayQueue,
    lobe_table: U32,
    *,
    reflection_block: int = 1,
    narrow_own: bool = False,
    edges: bool = False,
    fallback: str = "environment",
    slots: ShadowSlots = ONE_RAY,
) -> None:
    """Writes `reflection_light` [pixels, 2]; counts in the header of `reflection_queue`."""
    pixels = tile_pixels(frame)
    radiance = np.zeros((len(pixels.index), 3), np.float32)
    distance = np.full(len(radiance), MISS_DISTANCE)
    covered = np.flatnonzero(visibility[pixels.y, pixels.x, 0] != NOTHING)
    here = pixels[covered]
    s = unpack_surface(surface[here.y, here.x])
    view = normalize(-camera_direction(frame, here.x, here.y))
    albedo = surface_albedo(lobe_table, s, view)
    radiance[covered] = albedo * rough_radiance(frame, s, view, here, depth, probe, fallback)

    senders = reflection_senders(frame, visibility, surface, reflection_block, narrow_own)
    smooth = s.roughness <= frame["roughness_cutoff"]
    lanes, here = covered[smooth], here[smooth]
    s, view = unpack_surface(surface[here.y, here.x]), view[smooth]
    index = sender_for(frame, senders, here)
    own = index == here.index
    alone = own | (not edges)
    index = index[alone]
    told = reflected_distance(slots, reflected, index)
    distance[lanes[alone]] = np.where(own[alone], told, -told)
    brought = reflected_radiance(slots, reflected, shadow_results, index)
    if edges:
        brought = brought * shown_weight(lobe_table, s, view)[alone]
    radiance[lanes[alone]] = brought

    lanes, here, view = lanes[~alone], here[~alone], view[~alone]
    s = unpack_surface(surface[here.y, here.x])
    sent = SentLight(
        frame, surface, depth, reflected, shadow_results, senders, reflection_block, slots
    )
    receivers = sent.receivers(here, s)
    corner = sent.nearest_blocks(here)
    found = sent.gather(receivers, corner, 2, wide=False)
    few = np.flatnonzero(found.weight <= 0.0)
    around = (corner[0][few] - 1, corner[1][few] - 1)
    more = sent.gather(receivers[few], around, 4, wide=True)
    for name in ("radiance", "weight", "distance"):
        getattr(found, name)[few] = getattr(more, name)
    some = found.weight > 0.0
    reflection_queue.add("widened", int(some[few].sum()))
    reflection_queue.add("unlike", int((~some).sum()))
    mean = found.radiance[some] / found.weight[some, None]
    radiance[lanes[some]] = shown_weight(lobe_table, s, view)[some] * mean
    distance[lanes] = -NO_DISTANCE
    distance[lanes[some]] = -found.distance[some]
    reflection_light[pixels.index] = pack_radiance(radiance, distance)
