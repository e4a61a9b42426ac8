"""Twin of pixel_hit.wgsl: where a pixel's ray meets the triangle that the pixel sees."""

from typing import Any

import numpy as np

from bvh.ray_sphere import encode_place, intersect_spheres
from passes.twins.surface import OBJECT_VEC4S, RADIUS_WORD, corner_words, transform_point
from passes.twins.wgsl_functions import F32, U32, cross, dot, to_float

# In a pixel's id of a sphere: the ray was let through where it enters, and hits where it leaves.
SPHERE_LEFT = np.uint32(0x80000000)


def pixel_hit(
    frame: Any, tables: U32, geometry: U32, object: U32, primitive: U32, direction: F32
) -> tuple[F32, F32]:
    """Weights [n] of vertices 1 and 2, or places on spheres; a triangle seen edge-on gives its
    middle. `primitive` are pixels' ids."""
    left, primitive = primitive >= SPHERE_LEFT, pixel_primitive(primitive)
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
    found_u, found_v = np.where(edge_on, middle, u), np.where(edge_on, middle, v)
    ball = np.flatnonzero(values[:, 0, RADIUS_WORD] > 0)
    if ball.size:
        to_object = to_float(tables)[at[ball, None] + 3 + np.arange(3)]
        origin = transform_point(to_object, np.tile(frame["camera_origin"][:3], (ball.size, 1)))
        turned = dot(to_object[:, :, :3], direction[ball, None])
        center, radius = values[ball, 0, :3], values[ball, 0, RADIUS_WORD]
        hits = intersect_spheres(origin.T, turned.T, center.T, radius)
        leaves = left[ball] | (hits.t[0] <= 0)
        found_u[ball], found_v[ball] = encode_place(
            np.where(leaves, hits.normal[1], hits.normal[0])
        )
    return found_u, found_v


def pixel_primitive(ids: U32) -> U32:
    """[n] the primitive that a pixel's id names."""
    return np.asarray(ids & ~SPHERE_LEFT)
