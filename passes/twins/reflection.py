"""Twin of reflection.wgsl: a reflection ray from each pixel, or block, that is smooth enough."""

from typing import Any

import numpy as np

from passes.rays.reflection import REFLECTION_RECORD
from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.queue_push import RayQueue
from passes.twins.reflection_block import ray_footprint, reflection_senders, sending_pixels
from passes.twins.sent_reflection import sent_reflection
from passes.twins.shadow_slot import reflected_place
from passes.twins.surface import ray_origin
from passes.twins.tone_map import MISS_DISTANCE, pack_radiance
from passes.twins.wgsl_functions import U32, length, pack_2x16_float, vector


@np.errstate(all="ignore")
def reflection(
    frame: Any,
    tables: U32,
    geometry: U32,
    visibility: U32,
    surface: U32,
    reflected: U32,
    push_queue: RayQueue,
    *,
    reflection_block: int = 1,
    narrow_own: bool = False,
    slots: ShadowSlots = ONE_RAY,
) -> None:
    """Pushes onto `push_queue`; pixels whose lobe loses its sample are brought nothing in
    `reflected` [pixels, n]."""
    senders = reflection_senders(frame, visibility, surface, reflection_block, narrow_own)
    pixels = sending_pixels(frame, senders)
    sent = sent_reflection(frame, tables, geometry, visibility, surface, pixels)
    lost = reflected_place(slots, pixels.index[sent.lost])
    words = reflected.reshape(-1, 2)
    words[lost] = pack_radiance(np.zeros((len(lost), 3), np.float32), MISS_DISTANCE)
    for i in range(1, 1 + slots.bounces * slots.rays):
        words[lost + np.uint32(i)] = 0
    footprint = ray_footprint(senders, pixels)
    pixel_spread = footprint * frame["pixel_spread"]
    width = pixel_spread * length(sent.point.position - frame["camera_origin"][:3])
    spread = pixel_spread + sent.s.roughness * sent.s.roughness
    rays = np.zeros(len(sent.view), REFLECTION_RECORD.dtype)
    rays["origin"] = ray_origin(sent.point, sent.direction)
    rays["pixel"] = pixels.index
    rays["direction"] = sent.direction
    rays["cone"] = pack_2x16_float(vector(np.minimum(width, np.float32(6.0e4)), spread))
    push_queue.push(rays[~sent.lost])
    push_queue.add("replaced", int(sent.raised.sum()))
    push_queue.add("lost", int(sent.lost.sum()))
