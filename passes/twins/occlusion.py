"""Twin of occlusion.wgsl: a cosine-weighted ray from each pixel that sees a surface."""

from typing import Any

import numpy as np

from passes.rays.occlusion import OCCLUSION_RECORD
from passes.twins.gbuffer import NOTHING, tile_pixels, unpack_surface
from passes.twins.octahedral import encode_normal
from passes.twins.queue_push import RayQueue
from passes.twins.sample_number import sample_number
from passes.twins.sampling import (
    LEAST_HEIGHT,
    OCCLUSION_DIMENSION,
    basis,
    sample_cosine,
)
from passes.twins.surface import ray_origin, surface_point
from passes.twins.wgsl_functions import U32, dot, to_float


@np.errstate(all="ignore")
def occlusion(
    frame: Any,
    tables: U32,
    geometry: U32,
    visibility: U32,
    surface: U32,
    push_queue: RayQueue,
) -> None:
    """Pushes onto `push_queue`."""
    pixels = tile_pixels(frame)
    pixels = pixels[visibility[pixels.y, pixels.x, 0] != NOTHING]
    seen = visibility[pixels.y, pixels.x]
    s = unpack_surface(surface[pixels.y, pixels.x])
    u, v = to_float(seen[:, 2]), to_float(seen[:, 3])
    point = surface_point(frame, tables, geometry, seen[:, 0], seen[:, 1], u, v)
    local = sample_cosine(
        *(sample_number(frame, tables, pixels.index, OCCLUSION_DIMENSION + i) for i in range(2))
    )
    normal, geometric = s.shading_normal, s.geometric_normal
    b = basis(normal)
    direction = local[:, :1] * b.tangent + local[:, 1:2] * b.bitangent + local[:, 2:] * normal
    height = dot(direction, geometric)
    low = height <= LEAST_HEIGHT
    lift = np.float32(2.0) * LEAST_HEIGHT - np.float32(2.0) * height
    raised = direction + lift[:, None] * geometric
    direction = np.where(low[:, None], raised, direction)
    rays = np.zeros(len(seen), OCCLUSION_RECORD.dtype)
    rays["origin"] = ray_origin(point, direction)
    rays["direction"] = encode_normal(direction)
    rays["pixel"] = pixels.index
    push_queue.push(rays)
    push_queue.add("replaced", int(low.sum()))
