"""Whether boxes cover triangles: what of each triangle is left when its boxes are taken away.

A convex piece minus a box is at most six convex pieces, cut off one face plane at a time; all
pieces of all triangles are cut by their next box at once. In float64, so that what boxes with a
common face leave between them is far below the tolerance.
"""

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Share of a triangle's area below which a piece is a rounding.
TOLERANCE = 1e-9
_MOST_CORNERS = 24


def uncovered(triangles: F32, boxes: F32, first: I64, count: I64) -> F64:
    """[n] share of the area of `triangles [n, 3, 3]` outside of boxes `first .. first + count` of
    `boxes [m, 2, 3]`."""
    total = len(triangles)
    area = _areas(triangles.astype(np.float64), np.full(total, 3))
    points = np.zeros((total, _MOST_CORNERS, 3))
    points[:, :3] = triangles
    corners = np.full(total, 3)
    owner = np.arange(total)
    step = 0
    while True:
        open_rows = step < count[owner]
        if not open_rows.any():
            break
        box = boxes[np.where(open_rows, first[owner] + step, 0)].astype(np.float64)
        kept = [(points[~open_rows], corners[~open_rows], owner[~open_rows])]
        rest = (points[open_rows], corners[open_rows], owner[open_rows])
        box = box[open_rows]
        for axis in range(3):
            for end, sign in ((0, 1.0), (1, -1.0)):
                distance = sign * (rest[0][:, :, axis] - box[:, None, end, axis])
                # What lies in the face's plane is inside.
                used = np.arange(_MOST_CORNERS) < rest[1][:, None]
                beyond = ((distance < 0) & used).any(axis=1)
                outside = (*_keep(rest[0], rest[1], -distance), rest[2])
                cut = beyond & (outside[1] >= 3)
                kept.append((outside[0][cut], outside[1][cut], outside[2][cut]))
                inside = (*_keep(rest[0], rest[1], distance), rest[2])
                live = inside[1] >= 3
                rest = (inside[0][live], inside[1][live], inside[2][live])
                box = box[live]
        points, corners, owner = (np.concatenate(part) for part in zip(*kept, strict=True))
        large = _areas(points, corners) > TOLERANCE * area[owner]
        points, corners, owner = points[large], corners[large], owner[large]
        step += 1
    left = np.bincount(owner, weights=_areas(points, corners), minlength=total)
    return np.asarray(np.divide(left, area, out=np.zeros(total), where=area > 0))


def _areas(points: F64, corners: I64) -> F64:
    """[n] of planar convex polygons of so many corners."""
    fan = np.zeros((len(points), 3))
    for k in range(1, points.shape[1] - 1):
        rows = k + 1 < corners
        fan[rows] += np.cross(
            points[rows, k] - points[rows, 0], points[rows, k + 1] - points[rows, 0]
        )
    return np.asarray(0.5 * np.linalg.norm(fan, axis=1))


def _keep(points: F64, corners: I64, distance: F64) -> tuple[F64, I64]:
    """The parts of polygons at distances above zero (Sutherland and Hodgman)."""
    out = np.zeros_like(points)
    used = np.zeros(len(points), np.int64)
    rows = np.arange(len(points))
    for k in range(int(corners.max(initial=0))):
        live = k < corners
        after = np.where(k + 1 < corners, k + 1, 0)
        here, there = distance[:, k], distance[rows, after]
        take = live & (here >= 0)
        out[rows[take], used[take]] = points[take, k]
        used += take
        cross = live & (here * there < 0)
        t = here[cross] / (here[cross] - there[cross])
        a, b = points[cross, k], points[rows[cross], after[cross]]
        out[rows[cross], used[cross]] = a + (b - a) * t[:, None]
        used += cross
    return out, used
