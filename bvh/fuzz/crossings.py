"""Which rays cross which triangles, by brute force in float64: no tree takes part in it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Index = NDArray[np.int64]

# Rays that pass an edge more closely than this (barycentric weight) are no evidence: float32 and
# float64 may call them differently.
EDGE_MARGIN = 1e-4
T_TOLERANCE = 1e-4  # relative to t and to the scene's size


@dataclass(frozen=True, slots=True)
class Crossings:
    """Every crossing of some rays with some triangles, one entry each, float64."""

    ray: Index
    t: F64
    instance: Index
    row: Index  # of the BLAS's rows
    margin: F64  # least barycentric weight; just below zero for those just outside an edge

    def inside(self) -> "Crossings":
        return self.where(self.margin >= 0)

    def where(self, keep: NDArray[np.bool_]) -> "Crossings":
        return Crossings(
            self.ray[keep], self.t[keep], self.instance[keep], self.row[keep], self.margin[keep]
        )


def nearest(crossings: Crossings, ray_count: int) -> F64:
    """[rays] the smallest t of each ray, inf for none."""
    t = np.full(ray_count, np.inf)
    np.minimum.at(t, crossings.ray, crossings.t)
    return t


def same_t(t: F32, expected: F64, size: float) -> NDArray[np.bool_]:
    """Whether traced distances are the expected ones, misses (inf) included."""
    with np.errstate(invalid="ignore"):
        close = np.abs(t.astype(np.float64) - expected) <= T_TOLERANCE * (np.abs(expected) + size)
    return np.asarray(close | (np.isinf(t) & np.isinf(expected)))


def cross_triangles(corners: F64, origin: F64, direction: F64) -> tuple[Index, Index, F64, F64]:
    """(ray, triangle, t, least barycentric weight) of every ray line that meets a triangle or
    passes it by less than EDGE_MARGIN; Moeller and Trumbore 1997, float64. `corners` [m, 3, 3],
    rays [n, 3]."""
    a, e1, e2 = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(e1, e2)
    line = np.concatenate([np.cross(direction, origin), direction], 1)
    of_u = np.concatenate([-e2, np.cross(a, e2)], 1).T
    of_v = np.concatenate([e1, -np.cross(a, e1)], 1).T
    with np.errstate(all="ignore"):
        scale = -1.0 / (direction @ normal.T)
        u, v = (line @ of_u) * scale, (line @ of_v) * scale
        margin = np.minimum(np.minimum(u, v), 1.0 - u - v)
        ray, triangle = np.nonzero(margin > -EDGE_MARGIN)
        t = (origin @ normal.T - (a * normal).sum(1)) * scale
    return ray, triangle, t[ray, triangle], margin[ray, triangle]


def passes_sphere(corners: F64, origin: F64, direction: F64) -> NDArray[np.bool_]:
    """[n] whether each ray line comes as near to zero as the farthest vertex is, and a little."""
    reach = 1.1 * np.linalg.norm(corners.reshape(-1, 3), axis=1).max()
    distance = np.linalg.norm(np.cross(origin, direction), axis=1)
    return np.asarray(distance <= reach * np.linalg.norm(direction, axis=1))
