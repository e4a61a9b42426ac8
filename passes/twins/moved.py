"""Twin of moved.wgsl: where what pixels show was on the picture before."""

from typing import Any

import numpy as np

from bvh.ray_sphere import decode_place
from passes.twins.camera import camera_direction
from passes.twins.gbuffer import NOTHING, Pixels
from passes.twins.surface import OBJECT_VEC4S, RADIUS_WORD, VERTEX_WORDS, transform_point
from passes.twins.wgsl_functions import F32, U32, clamp, dot, to_float, vector


def on_picture(frame: Any, rows: F32, p: F32) -> F32:
    """[n, 3] pixels from the top left, and w, of `p` [n, 4]."""
    half = np.float32(0.5)
    w = dot(rows[3], p)
    x = half + half * dot(rows[0], p) / w
    y = half - half * dot(rows[1], p) / w
    return vector(x * np.float32(frame["width"]), y * np.float32(frame["height"]), w)


@np.errstate(all="ignore")
def moved_by(
    frame: Any,
    previous_view: Any,
    tables: U32,
    geometry: U32,
    previous_objects: U32,
    previous_vertices: U32,
    visibility: U32,
    pixels: Pixels,
) -> tuple[F32, F32]:
    """[n, 2] pixels, and [n] depths along the axis of the view before."""
    seen = visibility[pixels.y, pixels.x]
    there = seen[:, 0] != NOTHING
    direction = camera_direction(frame, pixels.x, pixels.y)
    now = vector(direction[:, 0], direction[:, 1], direction[:, 2], 0.0)
    before = now.copy()
    object, primitive = seen[there, 0].astype(np.int64), seen[there, 1].astype(np.int64)
    rows = object[:, None] * OBJECT_VEC4S + np.arange(3)
    corner = 3 * (tables[object * OBJECT_VEC4S + 6, 0].astype(np.int64) + primitive)
    u = clamp(to_float(seen[there, 2]), 0.0, 1.0)
    v = clamp(to_float(seen[there, 3]), np.float32(0.0), np.float32(1.0) - u)
    held = [(tables, geometry[int(frame["vertex_base"]) :])]
    still = bool(previous_view["still"])
    held.append(held[0] if still else (previous_objects.reshape(-1, 4), previous_vertices))
    for (objects, vertices), points in zip(held, (now, before), strict=True):
        found = np.zeros((len(object), 3), np.float32)
        for k, weight in enumerate((np.float32(1.0) - u - v, u, v)):
            at = geometry[corner + k].astype(np.int64)[:, None] * VERTEX_WORDS + np.arange(3)
            place = transform_point(to_float(objects)[rows], to_float(vertices[at]))
            found += weight[:, None] * place
        # From a sphere's centre to a point of it; of triangles the radius is 0.
        vertex = geometry[corner].astype(np.int64)
        radius = to_float(geometry[int(frame["vertex_base"]) + vertex * VERTEX_WORDS + RADIUS_WORD])
        local = radius[:, None] * decode_place(to_float(seen[there, 2]), to_float(seen[there, 3]))
        found += dot(to_float(objects)[rows][:, :, :3], local[:, None])
        points[there] = vector(found[:, 0], found[:, 1], found[:, 2], 1.0)
    here = on_picture(frame, frame["view_projection"], now)
    came = on_picture(frame, previous_view["view_projection"], before)
    moved = np.where(came[:, 2:] > 0.0, here[:, :2] - came[:, :2], np.float32(0.0))
    return moved, came[:, 2]
