"""Twin of surface.wgsl: where a hit is, how precisely, and which way the surface faces."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bvh.ray_sphere import decode_place
from engine.scene.records import NO_STORED_NORMAL, OBJECT, VERTEX
from passes.twins.octahedral import decode_normal
from passes.twins.wgsl_functions import (
    F32,
    U32,
    clamp,
    cross,
    dot,
    length,
    normalize,
    to_float,
    to_words,
    unpack_4x8_unorm,
    vector,
)

OBJECT_VEC4S = OBJECT.size // 16
VERTEX_WORDS = VERTEX.size // 4
GAMMA_5 = np.float32(2.9802331e-7)
GAMMA_8 = np.float32(4.7683739e-7)
TAU = np.float32(6.2831855)
RADIUS_WORD = VERTEX.offsets["radius"] // 4


@dataclass(frozen=True, slots=True)
class SurfacePoint:
    """Arrays over lanes: [n, 3] vectors, [n, 2] uv, [n, 4] color, [n] numbers."""

    position: F32
    error: F32
    geometric_normal: F32
    shading_normal: F32
    uv: F32
    color: F32
    material: U32
    uv_density: F32


def transform_point(rows: F32, p: F32) -> F32:
    """`rows` [n, 3, 4], `p` [n, 3]"""
    q = vector(p[:, 0], p[:, 1], p[:, 2], 1.0)
    return dot(rows, q[:, None])


def magnitude(rows: F32, size: F32) -> F32:
    """The sum of the absolute terms of `transform_point`."""
    return transform_point(np.abs(rows), size)


def error_bound(to_world: F32, to_object: F32, local: F32, world: F32, extent: F32) -> F32:
    inner = GAMMA_8 * extent[:, None] + GAMMA_5 * magnitude(to_object, world)
    turned = dot(np.abs(to_world[:, :, :3]), inner[:, None])
    return np.asarray(GAMMA_8 * magnitude(to_world, local) + turned)


def corner_words(frame: Any, tables: U32, geometry: U32, object: U32, primitive: U32) -> U32:
    """[n, 3, words] the vertex records of each triangle."""
    facts = tables[object.astype(np.int64) * OBJECT_VEC4S + 6]
    corner = 3 * (facts[:, 0].astype(np.int64) + primitive)
    vertex = geometry[corner[:, None] + np.arange(3)].astype(np.int64)
    first = int(frame["vertex_base"]) + vertex * VERTEX_WORDS
    return geometry[first[..., None] + np.arange(VERTEX_WORDS)]


def surface_point(
    frame: Any, tables: U32, geometry: U32, object: U32, primitive: U32, u_in: F32, v_in: F32
) -> SurfacePoint:
    at = object.astype(np.int64) * OBJECT_VEC4S
    rows = to_float(tables)[at[:, None] + np.arange(6)]
    to_world, to_object = rows[:, :3], rows[:, 3:]
    facts = tables[at + 6]
    words = corner_words(frame, tables, geometry, object, primitive)
    values = to_float(words)  # [n, 3, 8]
    u = clamp(u_in, 0.0, 1.0)
    v = clamp(v_in, np.float32(0.0), np.float32(1.0) - u)
    w = np.float32(1.0) - u - v

    def weigh(corners: list[F32]) -> F32:
        c0, c1, c2 = corners
        return np.asarray(w[:, None] * c0 + u[:, None] * c1 + v[:, None] * c2)

    q = [values[:, k, 0:3] for k in range(3)]
    p = [transform_point(to_world, local) for local in q]
    extent = np.maximum(np.abs(q[1] - q[0]), np.abs(q[2] - q[0])).max(1)
    local = np.maximum.reduce([np.abs(corner) for corner in q])
    world = np.maximum.reduce([np.abs(corner) for corner in p])
    area_normal = cross(p[1] - p[0], p[2] - p[0])
    area2 = length(area_normal)
    geometric_normal: Any = area_normal / np.maximum(area2, np.float32(1.0e-37))[:, None]

    codes = words[:, :, 3]
    n = weigh([decode_normal(codes[:, k]) for k in range(3)])
    x, y, z = (to_object[:, k, :3] * n[:, k : k + 1] for k in range(3))
    stored = x + y + z
    stored = np.where((codes == NO_STORED_NORMAL).any(1)[:, None], np.float32(0.0), stored)
    stored_length = length(stored)[:, None]
    shading_normal = np.where(stored_length > 0.0, stored / stored_length, geometric_normal)

    t = [values[:, k, 4:6] for k in range(3)]
    e1, e2 = t[1] - t[0], t[2] - t[0]
    uv_area2 = np.abs(e1[:, 0] * e2[:, 1] - e2[:, 0] * e1[:, 1])
    found = SurfacePoint(
        position=weigh(p),
        error=error_bound(to_world, to_object, local, world, extent),
        geometric_normal=geometric_normal,
        shading_normal=shading_normal,
        uv=weigh(t),
        color=weigh([unpack_4x8_unorm(words[:, k, 6]) for k in range(3)]),
        material=facts[:, 2],
        uv_density=np.sqrt(uv_area2 / np.maximum(area2, np.float32(1.0e-20))),
    )
    ball = np.flatnonzero(values[:, 0, RADIUS_WORD] > 0)
    if not ball.size:
        return found
    point = sphere_point(to_world[ball], to_object[ball], values[ball, 0], u_in[ball], v_in[ball])
    point = replace(point, color=unpack_4x8_unorm(words[ball, 0, 6]), material=facts[ball, 2])
    columns = {}
    for name in SurfacePoint.__slots__:
        columns[name] = np.array(getattr(found, name))
        columns[name][ball] = getattr(point, name)
    return SurfacePoint(**columns)


def sphere_point(to_world: F32, to_object: F32, vertex: F32, u_in: F32, v_in: F32) -> SurfacePoint:
    """`vertex` [n, 8] are the records of the spheres' centres; without colour and material."""
    u, v = clamp(u_in, 0.0, 1.0), clamp(v_in, 0.0, 1.0)
    center, radius = vertex[:, :3], vertex[:, RADIUS_WORD, None]
    n = decode_place(u, v)
    position = transform_point(to_world, center + radius * n)
    x, y, z = (to_object[:, k, :3] * n[:, k : k + 1] for k in range(3))
    turned = x + y + z
    normal = np.asarray(turned / np.maximum(length(turned), np.float32(1.0e-37))[:, None])
    nx, ny, nz = n.T
    size = np.sqrt(nx * nx + nz * nz)
    ring = np.maximum(size, np.float32(0.05))
    flat = np.stack([-nz, np.zeros_like(nx), nx], axis=1)
    along = TAU * radius * flat / np.maximum(size, np.float32(1.0e-20))[:, None] * ring[:, None]
    across = np.float32(0.5) * TAU * radius * np.stack([nx * ny / ring, -ring, nz * ny / ring], 1)
    linear = to_world[:, :, :3]
    area = length(cross(dot(linear, along[:, None]), dot(linear, across[:, None])))
    local, world, extent = np.abs(center) + radius, np.abs(position), np.float32(2) * radius[:, 0]
    return SurfacePoint(
        position=position,
        error=error_bound(to_world, to_object, local, world, extent),
        geometric_normal=normal,
        shading_normal=normal,
        uv=np.stack([u, v], axis=1),
        color=np.zeros((len(u), 4), np.float32),
        material=np.zeros(len(u), np.uint32),
        uv_density=np.sqrt(np.float32(1.0) / np.maximum(area, np.float32(1.0e-20))),
    )


def face_viewer(point: SurfacePoint, view: F32) -> SurfacePoint:
    geometric, shading = point.geometric_normal, point.shading_normal
    geometric = np.where((dot(geometric, view) < 0.0)[:, None], -geometric, geometric)
    shading = np.where((dot(shading, geometric) < 0.0)[:, None], -shading, shading)
    facing = dot(shading, view)[:, None]
    least = np.float32(1.0e-3)
    bent = normalize(shading + (least - facing) * view)
    shading = np.where(facing < least, bent, shading)
    return replace(point, geometric_normal=geometric, shading_normal=shading)


def ray_origin(point: SurfacePoint, direction: F32) -> F32:
    normal = point.geometric_normal
    normal = np.where((dot(normal, direction) < 0.0)[:, None], -normal, normal)
    offset = dot(np.abs(normal), point.error)[:, None] * normal
    return away(point.position + offset, offset)


def away(value: F32, side: F32) -> F32:
    bits = to_words(value)
    up = (value > 0.0) == (side > 0.0)
    moved = to_float(np.where(up, bits + np.uint32(1), bits - np.uint32(1)))
    return np.where((side == 0.0) | (value == 0.0), value, moved)
