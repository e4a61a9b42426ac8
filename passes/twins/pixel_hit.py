"""Twin of pixel_hit.wgsl: where a pixel's ray meets the triangle that the pixel sees."""

from typing import Any

import numpy as np

from passes.twins.surface import OBJECT_VEC4S, corner_words, transform_point
from passes.twins.wgsl_functions import F32, U32, cross, dot, to_float


def pixel_hit(
    frame: Any, tables: U32, geometry: U32, object: U32, primitive: U32, direction: F32
) -> tuple[F32, F32]:
    """Weights [n] of vertices 1 and 2; a triangle seen edge-on gives its middle."""
    values = to_float(corner_words(frame, tables, geometry, object, primitive))
    at = object.astype(np.int64) * OBJECT_VEC4S
    to_world = to_float(tables)[at[:, None] + np.arange(3)]
    p0, p1, p2 = (transform_point(to_world, values[:, k, :3]) for k in range(3))
    e1, e2 = p1 - p0, p2 - p0
    p = cross(direction, e2)
    determinant = dot(e1, p)
    s = frame["camera_origin"][:3] - p0
    u, v = dot(s, p) / determinant, dot(direction, cross(s, e1)) / determinant
    edge_on, middle = determinant == 0.0, np.float32(1.0 / 3.0)
    return np.where(edge_on, middle, u), np.where(edge_on, middle, v)
