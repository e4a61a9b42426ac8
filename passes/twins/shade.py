"""Twin of shade.wgsl: what reflection rays found, and the shadow rays from there."""

from typing import Any

import numpy as np

from bvh.rays import MISS_ID
from passes.rays.shadow import SHADOW_RECORD
from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.brdf import diffuse_albedo, reflectance_at_normal
from passes.twins.environment import ambient_radiance, environment
from passes.twins.hit_material import hit_surface
from passes.twins.keep_light import KeptLights
from passes.twins.light import is_black, sampled_roughness
from passes.twins.light_seen import light_seen
from passes.twins.paths import path_of
from passes.twins.queue_push import RayQueue
from passes.twins.sample_light import light_sample
from passes.twins.shadow_slot import reflected_light_place, reflected_place, shadow_slot
from passes.twins.specular_albedo import specular_albedo
from passes.twins.surface import ray_origin
from passes.twins.tone_map import MISS_DISTANCE, pack_radiance, unpack_radiance
from passes.twins.wgsl_functions import (
    U32,
    dot,
    reflect,
    unpack_2x16_float,
)


@np.errstate(all="ignore")
def shade(
    frame: Any,
    queue: RayQueue,
    results: Any,
    surface: U32,
    tables: U32,
    geometry: U32,
    texels: U32,
    reflected: U32,
    push_queue: Any,
    hit_records: U32,
    order: U32,
    lobe_table: U32,
    *,
    count: bool = False,
    fine_table: bool = False,
    is_sorted: bool = False,
    without_color: bool = False,
    slots: ShadowSlots = ONE_RAY,
    bounce: int = 1,
    uniform: bool = False,
    keep_light: bool = False,
) -> None:
    """Writes the rays' rows of `reflected` [pixels, n], pushes onto `push_queue`, or
    with `keep_light` leaves the lights' points there, in the rays' results; with `count` adds
    hits and texture fetches to the header of `queue`. Where `is_sorted`, goes
    through the rays in `order`. `bounce` of the rays, along their paths."""
    pushed = KeptLights(push_queue) if keep_light else push_queue
    rows: Any = slice(queue.count)
    if is_sorted:
        rows = order[rows]
    records, hits = queue.records[rows], results[rows]
    pixel = records["pixel"]
    weight, sees_lights = path_of(bounce, without_color)(frame, surface, lobe_table, records)
    radiance = environment(frame, records["direction"])

    lanes = np.flatnonzero(hits["object"] != MISS_ID)
    hit, record = hits[lanes], records[lanes]
    view = -record["direction"]
    point, material, _ = hit_surface(
        frame, tables, geometry, texels, hit_records, record, hit, fine_table=fine_table
    )
    normal = point.shading_normal
    n_v = np.maximum(dot(normal, view), np.float32(1.0e-4))
    f0 = reflectance_at_normal(material.base_color, material.metalness)
    specular = specular_albedo(lobe_table, f0, material.roughness, n_v)
    goes_on = (material.roughness <= frame["roughness_cutoff"]) & (bounce < slots.bounces)
    sky = specular * environment(frame, reflect(record["direction"], normal))
    radiance[lanes] = (
        material.emissive
        + diffuse_albedo(material.base_color, material.metalness, specular)
        * ambient_radiance(frame, normal)
        + np.where(goes_on[:, None], np.float32(0.0), sky)
    )
    surfaces = (
        point.position,
        point.geometric_normal,
        normal,
        view,
        material.base_color,
        material.metalness,
        sampled_roughness(material.roughness, goes_on),
    )
    words = reflected.reshape(-1, 2)
    for number in range(slots.rays):
        light = light_sample(
            frame, tables, slots, record["pixel"], bounce, number, *surfaces, uniform=uniform
        )
        arriving = np.zeros_like(radiance)
        arriving[lanes] = light.radiance * weight[lanes]
        words[reflected_light_place(slots, pixel, bounce, number)] = pack_radiance(arriving, 0.0)
        wanted = ~is_black(arriving[lanes])
        rays = np.zeros(len(lanes), SHADOW_RECORD.dtype)
        rays["origin"] = ray_origin(point, light.to_light)
        rays["light_uv"] = light.light_uv
        rays["slot"] = shadow_slot(slots, record["pixel"], bounce, number)
        pushed.push(rays[wanted])
    if count:
        queue.add("texture_fetches", int(material.fetches.sum()))
        queue.add("hits", len(lanes))

    seen = light_seen(frame, records["origin"], records["direction"], hits["t"])
    radiance += np.where(sees_lights[:, None], seen, np.float32(0.0))
    near = np.minimum(hits["t"], np.float32(6.0e4))
    distance = np.where(hits["object"] == MISS_ID, MISS_DISTANCE, near)
    place = reflected_place(slots, pixel)
    radiance *= weight
    if bounce > 1:
        before = words[place]
        radiance += unpack_radiance(before)
        distance = unpack_2x16_float(before[:, 1])[:, 1]
    words[place] = pack_radiance(radiance, distance)
    if bounce == 1:  # paths may end here
        for i in range(1 + slots.rays, 1 + slots.bounces * slots.rays):
            words[place + np.uint32(i)] = 0
