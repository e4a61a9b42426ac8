"""Twin of shade.wgsl: what reflection rays found, and the shadow rays from there."""

from typing import Any

import numpy as np

from bvh.rays import MISS_ID
from passes.hit_records import RECORD_TEXELS, RECORDS_A_ROW
from passes.rays.shadow import SHADOW_RECORD
from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.brdf import (
    MIRROR_ROUGHNESS,
    diffuse_albedo,
    reflectance_at_normal,
    specular_albedo,
)
from passes.twins.camera import camera_direction
from passes.twins.environment import ambient_radiance, environment
from passes.twins.gbuffer import unpack_surface
from passes.twins.light import is_black
from passes.twins.light_seen import light_seen
from passes.twins.material import material_at, material_of
from passes.twins.queue_push import RayQueue
from passes.twins.sample_light import light_sample
from passes.twins.sent_weight import sent_weight
from passes.twins.shadow_slot import reflected_light_place, reflected_place, shadow_slot
from passes.twins.surface import face_viewer, ray_origin, surface_point
from passes.twins.tone_map import MISS_DISTANCE, pack_radiance
from passes.twins.wgsl_functions import (
    U32,
    dot,
    normalize,
    reflect,
    unpack_2x16_float,
)


@np.errstate(all="ignore")
def shade(
    frame: Any,
    reflection_queue: RayQueue,
    reflection_results: Any,
    surface: U32,
    tables: U32,
    geometry: U32,
    texels: U32,
    reflected: U32,
    push_queue: RayQueue,
    hit_records: U32,
    order: U32,
    *,
    count: bool = False,
    fine_table: bool = False,
    is_sorted: bool = False,
    without_color: bool = False,
    slots: ShadowSlots = ONE_RAY,
    uniform: bool = False,
) -> None:
    """Writes the rays' rows of `reflected` [pixels, n], pushes onto `push_queue`; with `count`
    adds hits and texture fetches to the header of `reflection_queue`. Where `is_sorted`, goes
    through the rays in `order`."""
    rows: Any = slice(reflection_queue.count)
    if is_sorted:
        rows = order[rows]
    records, hits = reflection_queue.records[rows], reflection_results[rows]
    pixel = records["pixel"]
    y, x = (part.astype(np.int64) for part in np.divmod(pixel, np.uint32(frame["width"])))
    first = unpack_surface(surface[y, x])
    view = normalize(-camera_direction(frame, x, y))
    weight = sent_weight(first, view, records["direction"], without_color=without_color)
    radiance = environment(frame, records["direction"])

    lanes = np.flatnonzero(hits["object"] != MISS_ID)
    hit, record = hits[lanes], records[lanes]
    view = -record["direction"]
    point = face_viewer(
        surface_point(frame, tables, geometry, hit["object"], hit["primitive"], hit["u"], hit["v"]),
        view,
    )
    cone = unpack_2x16_float(record["cone"])
    width = cone[:, 0] + cone[:, 1] * hit["t"]
    cosine = np.abs(dot(point.geometric_normal, view))
    if fine_table:
        row, place = np.divmod(hit["object"].astype(np.int64), RECORDS_A_ROW)
        columns = RECORD_TEXELS * place[:, None] + np.arange(3)
        found = hit_records[row[:, None], columns]
        material = material_of(frame, tables, texels, found, point, width, cosine)
    else:
        material = material_at(frame, tables, texels, point, width, cosine)
    normal = point.shading_normal
    n_v = np.maximum(dot(normal, view), np.float32(1.0e-4))
    f0 = reflectance_at_normal(material.base_color, material.metalness)
    mirrored = reflect(record["direction"], normal)
    specular = specular_albedo(f0, material.roughness, n_v)
    radiance[lanes] = (
        material.emissive
        + diffuse_albedo(material.base_color, material.metalness, specular)
        * ambient_radiance(frame, normal)
        + specular * environment(frame, mirrored)
    )
    surfaces = (
        point.position,
        point.geometric_normal,
        normal,
        view,
        material.base_color,
        material.metalness,
        material.roughness,
    )
    words = reflected.reshape(-1, 2)
    for number in range(slots.rays):
        light = light_sample(
            frame, tables, slots, record["pixel"], 1, number, *surfaces, uniform=uniform
        )
        arriving = np.zeros_like(radiance)
        arriving[lanes] = light.radiance * weight[lanes]
        words[reflected_light_place(slots, pixel, 1, number)] = pack_radiance(arriving, 0.0)
        wanted = ~is_black(arriving[lanes])
        rays = np.zeros(len(lanes), SHADOW_RECORD.dtype)
        rays["origin"] = ray_origin(point, light.to_light)
        rays["light_uv"] = light.light_uv
        rays["slot"] = shadow_slot(slots, record["pixel"], 1, number)
        push_queue.push(rays[wanted])
    if count:
        reflection_queue.add("texture_fetches", int(material.fetches.sum()))
        reflection_queue.add("hits", len(lanes))

    seen = light_seen(frame, records["origin"], records["direction"], hits["t"])
    radiance += np.where((first.roughness < MIRROR_ROUGHNESS)[:, None], seen, np.float32(0.0))
    near = np.minimum(hits["t"], np.float32(6.0e4))
    distance = np.where(hits["object"] == MISS_ID, MISS_DISTANCE, near)
    words[reflected_place(slots, pixel)] = pack_radiance(radiance * weight, distance)
