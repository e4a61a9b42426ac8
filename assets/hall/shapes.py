"""Basic solids: boxes with worn edges, turned shapes, sweeps, and lofted grids of points.

Every function returns a MeshData with outward front faces. Units are metres; angles degrees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from assets.hall.geometry import Floats, MeshData, shaded


def loft(
    points: ArrayLike,
    *,
    closed: bool = False,
    flip: bool = False,
    crease_degrees: float = 38.0,
    colors: ArrayLike | None = None,
    uvs: ArrayLike | None = None,
    uv_scale: float = 1.0,
) -> MeshData:
    """A surface through a grid of points [rows, columns, 3]; `closed` joins the last column to the
    first. The front side is columns x rows (right-handed), turned by `flip`. Texture coordinates
    run with arc length (metres) unless `uvs` [rows, columns, 2] says otherwise; `colors`
    [rows, columns, 3]."""
    grid = np.asarray(points, np.float64)
    texture = _arc_lengths(grid, closed) if uvs is None else np.asarray(uvs, np.float64)
    tint = None if colors is None else np.broadcast_to(np.asarray(colors), grid.shape)
    if closed:
        grid = np.concatenate([grid, grid[:, :1]], axis=1)
        if tint is not None:
            tint = np.concatenate([tint, tint[:, :1]], axis=1)
    rows, columns = grid.shape[:2]
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b = index[:-1, :-1].ravel(), index[:-1, 1:].ravel()
    c, d = index[1:, 1:].ravel(), index[1:, :-1].ravel()
    triangles = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    return shaded(
        grid.reshape(-1, 3),
        triangles[:, ::-1] if flip else triangles,
        crease_degrees=crease_degrees,
        uvs=texture.reshape(-1, 2),
        uv_scale=uv_scale,
        colors=None if tint is None else tint.reshape(-1, 3),
    )


def lathe(
    profile: ArrayLike,
    segments: int,
    *,
    crease_degrees: float = 38.0,
    colors: ArrayLike | None = None,
    start: float = 0.0,
    sweep_degrees: float = 360.0,
    flip: bool = False,
) -> MeshData:
    """A profile [n, 2] of (radius, height) turned about +Y, running upwards for outward faces.
    `colors` [n, 3] per profile point."""
    line = np.asarray(profile, np.float64)
    closed = sweep_degrees >= 360.0
    count = segments if closed else segments + 1
    angle = np.radians(start + sweep_degrees * np.arange(count) / segments)
    points = np.stack(
        [
            line[:, None, 0] * np.cos(angle),
            np.broadcast_to(line[:, None, 1], (len(line), count)),
            -line[:, None, 0] * np.sin(angle),
        ],
        axis=-1,
    )
    tint = None if colors is None else np.repeat(np.asarray(colors)[:, None, :], count, axis=1)
    return loft(points, closed=closed, crease_degrees=crease_degrees, colors=tint, flip=flip)


def tube(
    path: ArrayLike, radii: ArrayLike, sides: int, *, caps: bool = True, flatten: float = 1.0
) -> MeshData:
    """A round tube along `path` [n, 3] with a radius per point; `flatten` squeezes it along the
    second frame direction."""
    line = np.asarray(path, np.float64)
    radius = np.broadcast_to(np.asarray(radii, np.float64), (len(line),))
    tangent = np.gradient(line, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    side = np.zeros_like(line)
    seed = np.array([1.0, 0.0, 0.0]) if abs(tangent[0, 0]) < 0.8 else np.array([0.0, 0.0, 1.0])
    for row in range(len(line)):  # the frame of the row before, turned as little as possible
        seed = seed - tangent[row] * (seed @ tangent[row])
        seed /= np.linalg.norm(seed)
        side[row] = seed
    other = np.cross(tangent, side)
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)[None, :, None]
    ring = np.cos(angle) * side[:, None] + np.sin(angle) * other[:, None] * flatten
    points = line[:, None] + radius[:, None, None] * ring
    if caps:
        ends = [np.repeat(line[[k]], sides, axis=0)[None] for k in (0, -1)]
        points = np.concatenate([ends[0], points, ends[1]])
    return loft(points, closed=True)


def sweep(profile: ArrayLike, frames: ArrayLike, *, closed_profile: bool = True) -> MeshData:
    """A profile [n, 2] carried through `frames` [m, 3, 3]: rows are origin, the direction of the
    profile's first coordinate, and of its second. Ends stay open."""
    shape, frame = np.asarray(profile, np.float64), np.asarray(frames, np.float64)
    points = (
        frame[:, None, 0]
        + shape[None, :, :1] * frame[:, None, 1]
        + shape[None, :, 1:] * frame[:, None, 2]
    )
    return loft(points, closed=closed_profile)


def arc_frames(
    radius: float, start: float, end: float, steps: int, *, plane: str = "zy", height: float = 1.0
) -> Floats:
    """Frames along a circular arc about the origin: the profile's first coordinate points outwards,
    its second along the arc's axis. `height` scales the arc's rise."""
    angle = np.radians(np.linspace(start, end, steps + 1))
    zero = np.zeros_like(angle)
    out = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if plane == "zy":
        position = np.stack([zero, out[:, 1] * height, out[:, 0]], 1) * radius
        outward = np.stack([zero, out[:, 1], out[:, 0]], 1)
        axis = np.tile([1.0, 0.0, 0.0], (len(angle), 1))
    else:
        position = np.stack([out[:, 0], out[:, 1] * height, zero], 1) * radius
        outward = np.stack([out[:, 0], out[:, 1], zero], 1)
        axis = np.tile([0.0, 0.0, -1.0], (len(angle), 1))
    return np.stack([position, outward, axis], axis=1)


def box(
    size: Sequence[float],
    center: Sequence[float] = (0.0, 0.0, 0.0),
    *,
    bevel: float = 0.0,
    uv_scale: float = 1.0,
) -> MeshData:
    """A box of full `size`; with a `bevel` each edge is cut by that many metres."""
    half = np.asarray(size, np.float64) / 2.0
    if bevel <= 0.0:
        bevel = 0.0
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)
    # Vertex [corner, axis]: the copy that lies on the face across `axis`.
    inset = half - bevel
    points = np.repeat((signs * inset)[:, None], 3, axis=1)
    for axis in range(3):
        points[:, axis, axis] = signs[:, axis] * half[axis]
    faces: list[tuple[int, ...]] = []
    for axis in range(3):
        first, second = 4 >> ((axis + 1) % 3), 4 >> ((axis + 2) % 3)
        for low in (0, 4 >> axis):
            ring = (low, low + first, low + first + second, low + second)
            faces.append(tuple(corner * 3 + axis for corner in ring))
    if bevel > 0.0:
        for axis in range(3):  # edges along `axis`
            step, first, second = 4 >> axis, (axis + 1) % 3, (axis + 2) % 3
            for corner in range(8):
                if not corner & step:
                    other = corner + step
                    faces.append(
                        (
                            corner * 3 + first,
                            other * 3 + first,
                            other * 3 + second,
                            corner * 3 + second,
                        )
                    )
        faces += [(corner * 3, corner * 3 + 1, corner * 3 + 2) for corner in range(8)]
    return convex(
        points.reshape(-1, 3), faces, center=center, crease_degrees=10.0, uv_scale=uv_scale
    )


def convex(
    points: Floats,
    faces: Sequence[Sequence[int]],
    *,
    center: Sequence[float] = (0.0, 0.0, 0.0),
    crease_degrees: float = 10.0,
    uv_scale: float = 1.0,
) -> MeshData:
    """Convex polygons about the origin, each turned to face outwards, then moved to `center`."""
    triangles = []
    for face in faces:
        ring = points[list(face)]
        normal = np.cross(ring[1] - ring[0], ring[2] - ring[1])
        turned = list(face) if normal @ ring.mean(axis=0) > 0.0 else list(face)[::-1]
        triangles += [(turned[0], turned[k], turned[k + 1]) for k in range(1, len(turned) - 1)]
    return shaded(
        points + np.asarray(center), triangles, crease_degrees=crease_degrees, uv_scale=uv_scale
    )


def _arc_lengths(grid: Floats, closed: bool) -> Floats:
    """Texture coordinates [rows, columns (+1 when closed), 2] by mean arc length both ways."""
    wrapped = np.concatenate([grid, grid[:, :1]], axis=1) if closed else grid
    across = np.linalg.norm(np.diff(wrapped, axis=1), axis=2).max(axis=0)
    along = np.linalg.norm(np.diff(wrapped, axis=0), axis=2).mean(axis=1)
    u = np.concatenate([[0.0], np.cumsum(across)])
    v = np.concatenate([[0.0], np.cumsum(along)])
    if closed and u[-1] > 0.0:  # a whole number of repeats, so that the seam does not show
        u *= max(1.0, float(np.round(u[-1]))) / u[-1]
    return np.stack(np.meshgrid(u, -v), axis=-1)
