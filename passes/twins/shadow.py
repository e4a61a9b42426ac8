"""Twin of shadow.wgsl: direct light on visible surfaces and its shadow rays."""

from typing import Any

import numpy as np

from passes.rays.shadow import SHADOW_RECORD
from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.camera import camera_direction
from passes.twins.gbuffer import NOTHING, tile_pixels, unpack_surface
from passes.twins.keep_light import KeptLights
from passes.twins.light import is_black, sampled_roughness
from passes.twins.sample_light import light_sample
from passes.twins.shadow_slot import direct_place, shadow_slot
from passes.twins.surface import ray_origin, surface_point
from passes.twins.tone_map import pack_radiance
from passes.twins.wgsl_functions import U32, normalize, to_float


@np.errstate(all="ignore")
def shadow(
    frame: Any,
    tables: U32,
    geometry: U32,
    visibility: U32,
    surface: U32,
    direct: U32,
    push_queue: Any,
    *,
    slots: ShadowSlots = ONE_RAY,
    uniform: bool = False,
    keep_light: bool = False,
) -> None:
    """Writes `direct` [pixels, 2 * slots.rays], pushes onto `push_queue`, or
    with `keep_light` leaves the lights' points there, in the rays' results."""
    pushed = KeptLights(push_queue) if keep_light else push_queue
    pixels = tile_pixels(frame)
    direct[pixels.index] = 0
    pixels = pixels[visibility[pixels.y, pixels.x, 0] != NOTHING]
    seen = visibility[pixels.y, pixels.x]
    s = unpack_surface(surface[pixels.y, pixels.x])
    view = normalize(-camera_direction(frame, pixels.x, pixels.y))
    u, v = to_float(seen[:, 2]), to_float(seen[:, 3])
    point = surface_point(frame, tables, geometry, seen[:, 0], seen[:, 1], u, v)
    surfaces = (
        point.position,
        s.geometric_normal,
        s.shading_normal,
        view,
        s.base_color,
        s.metalness,
        sampled_roughness(s.roughness, s.roughness <= frame["roughness_cutoff"]),
    )
    for number in range(slots.rays):
        light = light_sample(
            frame, tables, slots, pixels.index, 0, number, *surfaces, uniform=uniform
        )
        place = direct_place(slots, pixels.index, number)
        direct.reshape(-1, 2)[place] = pack_radiance(light.radiance, 0.0)
        wanted = ~is_black(light.radiance)
        rays = np.zeros(len(view), SHADOW_RECORD.dtype)
        rays["origin"] = ray_origin(point, light.to_light)
        rays["light_uv"] = light.light_uv
        rays["slot"] = shadow_slot(slots, pixels.index, 0, number)
        pushed.push(rays[wanted])
