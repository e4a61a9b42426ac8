"""Closest hit and crossing count of every ray against every triangle or sphere: no BVH.

`closest` is float64: Moeller and Trumbore's system ("Fast, Minimum Storage Ray/Triangle
Intersection", 1997) written as three matrix products over the ray's Pluecker coordinates,
two-sided, edges inclusive. A ray through a shared edge therefore counts both triangles; use it for
hits and ties, not for parity on edges. `closest_watertight` asks the tracers' own triangle test:
what it finds, a structure must not lose, however thin or far away a triangle is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bvh.ray_triangle import AXIS_ORDER, dominant_axis, intersect_triangles

F64 = NDArray[np.float64]

F32 = NDArray[np.float32]

_PAIR_LIMIT = 1 << 19  # ray-triangle pairs held at once: about 20 MiB of float64


@dataclass(frozen=True, slots=True)
class BruteHits:
    """One entry a ray."""

    t: F64  # inf on a miss; units of the given direction
    u: F64  # weight of vertex 1
    v: F64  # weight of vertex 2
    triangle: NDArray[np.int64]  # row of `triangles`, the lowest on a tie; -1 on a miss
    crossings: NDArray[np.int64]  # all triangles with t_min < t < t_max


def closest(triangles: ArrayLike, rays: NDArray[Any]) -> BruteHits:
    """`triangles` [m, 3, 3], `rays` [n] of bvh.rays.RAY. Degenerate triangles are never hit."""
    corners = np.asarray(triangles, np.float64).reshape(-1, 3, 3)
    n, m = len(rays), len(corners)
    hits = BruteHits(
        np.full(n, np.inf),
        np.zeros(n),
        np.zeros(n),
        np.full(n, -1, np.int64),
        np.zeros(n, np.int64),
    )
    if not m or not n:
        return hits
    # Products of coordinates cancel: keep them small.
    center = corners.reshape(-1, 3).mean(0)
    a = corners[:, 0] - center
    e1, e2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(e1, e2)
    of_u = np.concatenate([-e2, np.cross(a, e2)], 1).T
    of_v = np.concatenate([e1, -np.cross(a, e1)], 1).T
    plane = (a * normal).sum(1)
    origin = rays["origin"].astype(np.float64) - center
    direction = rays["direction"].astype(np.float64)
    line = np.concatenate([np.cross(direction, origin), direction], 1)
    ray_step = max(1, min(n, _PAIR_LIMIT // min(m, 4096)))
    triangle_step = max(1, _PAIR_LIMIT // ray_step)
    for r in range(0, n, ray_step):
        rows = slice(r, min(n, r + ray_step))
        t_min, t_max = rays["t_min"][rows, None], rays["t_max"][rows, None]
        for c in range(0, m, triangle_step):
            cols = slice(c, min(m, c + triangle_step))
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                scale = -1.0 / (direction[rows] @ normal[cols].T)
                t = (origin[rows] @ normal[cols].T - plane[cols]) * scale
                u = (line[rows] @ of_u[:, cols]) * scale
                v = (line[rows] @ of_v[:, cols]) * scale
                inside = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > t_min) & (t < t_max)
            hits.crossings[rows] += inside.sum(1)
            t = np.where(inside, t, np.inf)
            best = t.argmin(1)
            row = np.arange(len(best))
            better = np.flatnonzero(t[row, best] < hits.t[rows])
            where, chosen = r + better, best[better]
            hits.t[where] = t[better, chosen]
            hits.u[where], hits.v[where] = u[better, chosen], v[better, chosen]
            hits.triangle[where] = c + chosen
    return hits


def closest_sphere(spheres: ArrayLike, rays: NDArray[Any]) -> BruteHits:
    """`spheres` [m, 4] centre and radius, `rays` [n] of bvh.rays.RAY, in float64. Entering and
    leaving are crossings; `triangle` is the sphere, u and v its place (`bvh.ray_sphere`)."""
    given = np.asarray(spheres, np.float64).reshape(-1, 4)
    origin, direction = rays["origin"].astype(np.float64), rays["direction"].astype(np.float64)
    length = np.linalg.norm(direction, axis=1)
    unit = direction / length[:, None]
    f = origin[:, None] - given[None, :, :3]
    middle = -(f * unit[:, None]).sum(2)
    nearest = f + middle[..., None] * unit[:, None]
    with np.errstate(invalid="ignore"):
        half = np.sqrt(given[:, 3] ** 2 - (nearest**2).sum(2))
        t = np.stack([middle - half, middle + half], axis=2) / length[:, None, None]
        inside = (t > rays["t_min"][:, None, None]) & (t < rays["t_max"][:, None, None])
    crossings = inside.sum(axis=(1, 2))
    t = np.where(inside, t, np.inf).reshape(len(rays), -1)
    if not t.size:
        t = np.full((len(rays), 1), np.inf)
    best = t.argmin(1)
    row = np.arange(len(rays))
    hit = np.isfinite(t[row, best])
    found = BruteHits(
        t[row, best], np.zeros(len(t)), np.zeros(len(t)), np.where(hit, best // 2, -1), crossings
    )
    point = origin[hit] + direction[hit] * found.t[hit, None] - given[found.triangle[hit], :3]
    x, y, z = point.T
    found.u[hit] = 0.5 + np.arctan2(z, x) / (2 * np.pi)
    found.v[hit] = np.arctan2(np.hypot(x, z), y) / np.pi
    return found


def closest_watertight(triangles: F32, rays: NDArray[Any]) -> tuple[F32, NDArray[np.int64]]:
    """(t [n], inf on a miss; crossings [n]) of `rays` [n] with `triangles` [m, 3, 3] by
    `bvh.ray_triangle`, in float32 as every tracer decides it."""
    corners = np.ascontiguousarray(triangles, np.float32).reshape(-1, 3, 3)
    n, m = len(rays), len(corners)
    nearest, crossings = np.full(n, np.inf, np.float32), np.zeros(n, np.int64)
    if not m or not n:
        return nearest, crossings
    order = AXIS_ORDER[dominant_axis(rays["direction"].T)]  # [n, 3]
    origin = np.take_along_axis(rays["origin"], order, axis=1)
    direction = np.take_along_axis(rays["direction"], order, axis=1)
    step = max(1, _PAIR_LIMIT // (4 * m))
    for first in range(0, n, step):
        rows = np.arange(first, min(n, first + step))
        turned = corners.transpose(1, 2, 0)[:, order[rows].T]  # vertex, component, ray, triangle
        of_pair = [np.repeat(values[rows].T, m, axis=1) for values in (origin, direction)]
        with np.errstate(over="ignore", invalid="ignore"):
            found = intersect_triangles(turned.reshape(3, 3, -1), *of_pair)
        ray = rows[found.lanes // m]
        inside = (found.t > rays["t_min"][ray]) & (found.t < rays["t_max"][ray])
        np.minimum.at(nearest, ray[inside], found.t[inside])
        np.add.at(crossings, ray[inside], 1)
    return nearest, crossings
