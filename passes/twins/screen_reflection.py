"""Twin of screen_reflection.wgsl: reflections found on the picture and in the probe."""

from typing import Any

import numpy as np

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.brdf import NARROW_ROUGHNESS, diffuse_albedo, reflectance_at_normal
from passes.twins.direct import direct_radiance
from passes.twins.environment import ambient_radiance, environment
from passes.twins.gbuffer import unpack_surface
from passes.twins.light_seen import light_seen
from passes.twins.material import MATERIAL_VEC4S
from passes.twins.probe import probe_cone
from passes.twins.reflection_block import ray_footprint, reflection_senders, sending_pixels
from passes.twins.screen_march import march_screen, seen_position
from passes.twins.sent_direction import sent_direction
from passes.twins.sent_weight import sent_weight
from passes.twins.shadow_slot import reflected_place
from passes.twins.specular_albedo import specular_albedo
from passes.twins.tone_map import MISS_DISTANCE, pack_radiance
from passes.twins.wgsl_functions import F32, U32, Index, dot, reflect, to_float

FADE = np.float32(0.05)


def border_weight(frame: Any, x: Index, y: Index) -> F32:
    width, height = np.float32(frame["width"]), np.float32(frame["height"])
    px, py = x.astype(np.float32) + np.float32(0.5), y.astype(np.float32) + np.float32(0.5)
    inner = np.minimum(np.minimum(px, width - px), np.minimum(py, height - py))
    return np.clip(inner / (FADE * min(width, height)), np.float32(0.0), np.float32(1.0))


@np.errstate(all="ignore")
def screen_reflection(
    frame: Any,
    tables: U32,
    visibility: U32,
    surface: U32,
    pyramid: U32,
    probe: F32,
    direct: U32,
    shadow_results: U32,
    reflected: U32,
    screen_counts: U32,
    lobe_table: U32,
    *,
    steps: int,
    slots: ShadowSlots = ONE_RAY,
    reflection_block: int = 1,
    narrow_own: bool = False,
    count: bool = False,
    without_color: bool = False,
) -> None:
    """Writes pixels of `reflected`; with `count` adds to `screen_counts`."""
    senders = reflection_senders(frame, visibility, surface, reflection_block, narrow_own)
    pixels = sending_pixels(frame, senders)
    sent = sent_direction(frame, tables, surface, pixels)
    s, direction, lost = sent.s, sent.direction, sent.lost
    hit = march_screen(frame, pyramid, pixels.x, pixels.y, direction, steps)
    origin = seen_position(frame, pyramid, pixels.x, pixels.y)

    inner = np.where(hit.found, border_weight(frame, hit.x, hit.y), np.float32(0.0))
    h = unpack_surface(surface[hit.y, hit.x])
    index = (hit.y * int(frame["width"]) + hit.x).astype(np.uint32)
    material = int(frame["material_base"]) + h.material.astype(np.int64) * MATERIAL_VEC4S
    emissive = to_float(tables)[material + 1, :3]
    n_v = np.maximum(dot(h.shading_normal, -direction), np.float32(1.0e-4))
    f0 = reflectance_at_normal(h.base_color, h.metalness)
    specular = specular_albedo(lobe_table, f0, h.roughness, n_v)
    diffuse = diffuse_albedo(h.base_color, h.metalness, specular)
    light = emissive + diffuse * ambient_radiance(frame, h.shading_normal)
    light = light + specular * environment(frame, reflect(direction, h.shading_normal))
    light = light + direct_radiance(slots, direct, shadow_results, index)
    radiance = np.where((inner > 0.0)[:, None], inner[:, None] * light, np.float32(0.0))

    footprint = ray_footprint(senders, pixels)
    spread = footprint * frame["pixel_spread"] + s.roughness * s.roughness
    shown, covered = probe_cone(frame, probe, origin, direction, spread)
    outer = (np.float32(1.0) - inner)[:, None]
    radiance = radiance + np.where(outer > 0.0, outer * shown, np.float32(0.0))
    t_max = np.where(inner > 0.0, hit.t, np.float32(3.0e38))
    lamp = light_seen(frame, origin, direction, t_max)
    radiance += np.where((s.roughness < NARROW_ROUGHNESS)[:, None], lamp, np.float32(0.0))
    if count:
        elsewhere = (inner <= 0.0) & ~lost
        screen_counts += np.array(
            [
                ((inner > 0.0) & ~lost).sum(),
                (elsewhere & (covered >= 0.5)).sum(),
                (elsewhere & (covered < 0.5)).sum(),
                sent.raised.sum(),
                (hit.cut & ~lost).sum(),
            ],
            np.uint32,
        )
    weight = sent_weight(lobe_table, s, sent.view, direction, without_color=without_color)
    distance = np.where(inner > 0.0, np.minimum(hit.t, np.float32(6.0e4)), MISS_DISTANCE)
    words = reflected.reshape(-1, 2)
    brought = np.where(lost[:, None], np.float32(0.0), radiance * weight)
    place = reflected_place(slots, pixels.index)
    words[place] = pack_radiance(brought, np.where(lost, MISS_DISTANCE, distance))
    for i in range(1, 1 + slots.bounces * slots.rays):
        words[place + np.uint32(i)] = 0
