"""First hits of a few parallel rays against all placed triangles, on the CPU and without a tree.

Used once when a scene is loaded, to find the wall in front of a camera and the ceiling above a
point. Rays share one direction, so in a frame with that direction as z a hit is a
point-in-triangle test in the plane (Moeller and Trumbore 1997 with direction (0, 0, 1)), and
triangles whose flat box misses every ray fall out before any arithmetic. Alpha is not tested.
"""

from collections.abc import Sequence

import numpy as np

from engine.scene.mesh import F64, Mesh
from engine.scene.scene import Instance, instance_boxes


def beam_distances(
    meshes: Sequence[Mesh], instances: Sequence[Instance], direction: F64, origins: F64
) -> F64:
    """[n] distance in metres from each of `origins` [n, 3] along unit `direction` [3] to the
    first triangle; infinity where there is none."""
    frame = _frame(direction)
    rays = origins @ frame.T
    low, high = rays[:, :2].min(axis=0), rays[:, :2].max(axis=0)
    best = np.full(len(origins), np.inf)
    numbers, boxes = instance_boxes(meshes, instances, frame)
    margin = 1e-9 * np.abs(boxes).max(initial=0.0)
    touched = (boxes[:, 0, :2] <= high + margin).all(axis=1)
    touched &= (boxes[:, 1, :2] >= low - margin).all(axis=1)
    for number in np.array(numbers, np.int64)[touched]:
        instance = instances[number]
        mesh = meshes[instance.mesh]
        matrix = frame @ instance.transform[:3, :3]
        points = mesh.positions @ matrix.T + frame @ instance.transform[:3, 3]
        for corners in _near_beam(points, mesh, low, high, float(rays[:, 2].min())):
            best = np.minimum(best, _hit(corners, rays))
    return best


def _frame(direction: F64) -> F64:
    """[3, 3] rotation whose third row is `direction`."""
    helper = np.eye(3)[np.argmin(np.abs(direction))]
    u = np.cross(helper, direction)
    u /= np.linalg.norm(u)
    return np.stack([u, np.cross(direction, u), direction])


def _near_beam(points: F64, mesh: Mesh, low: F64, high: F64, start: float) -> list[F64]:
    """Corners [k, 3, 3] of the triangles whose box touches the beam; an empty list if none."""
    if not len(mesh.triangles) or (points[:, :2].min(axis=0) > high).any():
        return []
    if (points[:, :2].max(axis=0) < low).any() or points[:, 2].max() < start:
        return []
    keep = np.ones(len(mesh.triangles), bool)
    for axis in (0, 1):
        a, b, c = points[:, axis][mesh.triangles.T]
        keep &= (np.minimum(np.minimum(a, b), c) <= high[axis]) & (
            np.maximum(np.maximum(a, b), c) >= low[axis]
        )
    return [points[mesh.triangles[keep]]] if keep.any() else []


def _hit(corners: F64, rays: F64) -> F64:
    """[n] distances along z from `rays` [n, 3] to triangles [k, 3, 3]."""
    result = np.full(len(rays), np.inf)
    a, edge_b, edge_c = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    determinant = edge_b[:, 0] * edge_c[:, 1] - edge_b[:, 1] * edge_c[:, 0]
    facing = determinant != 0
    inverse = 1.0 / np.where(facing, determinant, 1.0)
    for i, ray in enumerate(rays):
        x, y = ray[0] - a[:, 0], ray[1] - a[:, 1]
        u = (x * edge_c[:, 1] - y * edge_c[:, 0]) * inverse
        v = (y * edge_b[:, 0] - x * edge_b[:, 1]) * inverse
        distance = a[:, 2] + u * edge_b[:, 2] + v * edge_c[:, 2] - ray[2]
        hit = facing & (u >= 0) & (v >= 0) & (u + v <= 1) & (distance > 0)
        if hit.any():
            result[i] = distance[hit].min()
    return result
