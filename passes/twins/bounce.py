"""Twin of bounce.wgsl: the next reflection ray of each path, from what its last one hit."""

from typing import Any

import numpy as np

from bvh.rays import MISS_ID
from passes.rays.bounce import BOUNCE_RECORD
from passes.twins.brdf import NARROW_ROUGHNESS, reflection_weight
from passes.twins.hit_material import hit_surface
from passes.twins.light import is_black
from passes.twins.paths import path_of
from passes.twins.queue_push import RayQueue
from passes.twins.reflect_ray import reflect_ray
from passes.twins.sample_number import sample_number
from passes.twins.sampling import reflection_dimension
from passes.twins.surface import ray_origin
from passes.twins.wgsl_functions import U32, pack_2x16_float, unpack_2x16_float, vector


@np.errstate(all="ignore")
def bounce(
    frame: Any,
    queue: RayQueue,
    results: Any,
    surface: U32,
    tables: U32,
    geometry: U32,
    texels: U32,
    push_queue: RayQueue,
    hit_records: U32,
    lobe_table: U32,
    *,
    number: int,
    count: bool = False,
    fine_table: bool = False,
    without_color: bool = False,
) -> None:
    """Pushes the `number`th rays of paths onto `push_queue`; with `count` adds texture fetches to
    the header of `queue`."""
    records, hits = queue.records[: queue.count], results[: queue.count]
    lanes = np.flatnonzero(hits["object"] != MISS_ID)
    record, hit = records[lanes], hits[lanes]
    view = -record["direction"]
    point, material, width = hit_surface(
        frame, tables, geometry, texels, hit_records, record, hit, fine_table=fine_table
    )
    if count:
        queue.add("texture_fetches", int(material.fetches.sum()))
    r1, r2 = (
        sample_number(frame, tables, record["pixel"], reflection_dimension(number) + i)
        for i in range(2)
    )
    direction, raised, lost = reflect_ray(
        view, point.shading_normal, point.geometric_normal, material.roughness, r1, r2
    )
    weight, _ = path_of(number - 1, without_color)(frame, surface, lobe_table, record)
    weight = weight * reflection_weight(
        material.base_color,
        material.metalness,
        material.roughness,
        point.shading_normal,
        view,
        direction,
    )
    wanted = (material.roughness <= frame["roughness_cutoff"]) & ~lost & ~is_black(weight)
    rays = np.zeros(len(lanes), BOUNCE_RECORD.dtype)
    rays["origin"] = ray_origin(point, direction)
    rays["pixel"] = record["pixel"]
    rays["direction"] = direction
    spread = unpack_2x16_float(record["cone"])[:, 1] + material.roughness * material.roughness
    rays["cone"] = pack_2x16_float(vector(np.minimum(width, np.float32(6.0e4)), spread))
    sees_lights = (material.roughness < NARROW_ROUGHNESS).astype(np.float32)
    rays["path"][:, 0] = pack_2x16_float(weight[:, :2])
    rays["path"][:, 1] = pack_2x16_float(vector(weight[:, 2], sees_lights))
    push_queue.push(rays[wanted])
    push_queue.add("replaced", int(raised[wanted].sum()))
    smooth = material.roughness <= frame["roughness_cutoff"]
    push_queue.add("lost", int((lost & smooth).sum()))
