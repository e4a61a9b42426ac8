"""Triangle meshes for the generator: one data type, and the step that gives it normals.

Owns MeshData and what turns bare positions and triangles into it: normals with a crease angle
(smooth where round, flat where edged), box-mapped texture coordinates, welding, and the removal
of triangles that have no area. Units are metres, +Y up, counter-clockwise front faces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Positions are rounded to this grid so that the last bits of sin and cos, which differ between
# processors, do not reach the file.
GRID = 2.0**-16
# A triangle thinner than this is a seam of a collapsed row (a pole, a tip), not a surface.
SMALLEST_DOUBLE_AREA = 1e-9


@dataclass(frozen=True, slots=True)
class MeshData:
    """One surface of one material."""

    positions: Floats  # [v, 3] metres
    normals: Floats  # [v, 3] unit
    uvs: Floats  # [v, 2]
    colors: Floats  # [v, 4] linear 0..1, multiplied with the base colour
    triangles: Ints  # [m, 3]


def shaded(
    positions: ArrayLike,
    triangles: ArrayLike,
    *,
    crease_degrees: float = 38.0,
    uvs: ArrayLike | None = None,
    uv_scale: float = 1.0,
    colors: ArrayLike | None = None,
) -> MeshData:
    """Give a bare surface normals. `uvs` [v, 2] per vertex, or None for box mapping (one unit a
    metre times `uv_scale`); `colors` [v, 3] per vertex or None for white."""
    points = np.round(np.asarray(positions, np.float64) / GRID) * GRID
    faces = np.asarray(triangles, np.int64).reshape(-1, 3)
    cross = _double_area_vectors(points, faces)
    keep = np.linalg.norm(cross, axis=1) > SMALLEST_DOUBLE_AREA
    faces, cross = faces[keep], cross[keep]
    corners = points[faces].reshape(-1, 3)
    normals = _crease_normals(corners, cross, crease_degrees)
    if uvs is None:
        corner_uvs = _box_map(corners, np.repeat(cross, 3, axis=0)) * uv_scale
    else:
        corner_uvs = np.asarray(uvs, np.float64)[faces].reshape(-1, 2) * uv_scale
    corner_colors = np.ones((len(corners), 4))
    if colors is not None:
        corner_colors[:, :3] = np.asarray(colors, np.float64)[faces].reshape(-1, 3)
    return _weld(corners, normals, corner_uvs, corner_colors)


def join(parts: Sequence[MeshData]) -> MeshData:
    """One mesh of several; vertices stay apart."""
    offsets = np.cumsum([0] + [len(part.positions) for part in parts])
    return MeshData(
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.uvs for part in parts]),
        np.concatenate([part.colors for part in parts]),
        np.concatenate([part.triangles + at for part, at in zip(parts, offsets, strict=False)]),
    )


def moved(mesh: MeshData, transform: Floats) -> MeshData:
    """The mesh through an affine 4x4; a mirroring transform turns the winding back."""
    linear = transform[:3, :3]
    normals = mesh.normals @ np.linalg.inv(linear)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    positions = np.round((mesh.positions @ linear.T + transform[:3, 3]) / GRID) * GRID
    mirrored = float(np.linalg.det(linear)) < 0.0
    triangles = mesh.triangles[:, ::-1] if mirrored else mesh.triangles
    return replace(mesh, positions=positions, normals=normals, triangles=triangles)


def tinted(mesh: MeshData, tint: ArrayLike) -> MeshData:
    """The mesh with its vertex colours multiplied by `tint`: [3], or [v, 3]."""
    colors = mesh.colors.copy()
    colors[:, :3] = np.clip(colors[:, :3] * np.asarray(tint, np.float64), 0.0, 1.0)
    return replace(mesh, colors=colors)


def placed(
    x: float = 0.0,
    y: float = 0.0,
    z: float = 0.0,
    *,
    yaw: float = 0.0,
    pitch: float = 0.0,
    roll: float = 0.0,
    scale: float | tuple[float, float, float] = 1.0,
) -> Floats:
    """A 4x4 transform: scale, roll about Z, pitch about X, yaw about Y (degrees), then move."""
    matrix = np.eye(4)
    matrix[:3, :3] = rotation(yaw, 1) @ rotation(pitch, 0) @ rotation(roll, 2)
    matrix[:3, :3] *= np.broadcast_to(np.asarray(scale, np.float64), (3,))
    matrix[:3, 3] = (x, y, z)
    return matrix


def rotation(degrees: float, axis: int) -> Floats:
    """A 3x3 right-handed rotation about coordinate axis 0, 1 or 2."""
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    matrix = np.eye(3)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix[first, first] = matrix[second, second] = cosine
    matrix[second, first], matrix[first, second] = sine, -sine
    return matrix


def _double_area_vectors(points: Floats, faces: Ints) -> Floats:
    first = points[faces[:, 0]]
    return np.cross(points[faces[:, 1]] - first, points[faces[:, 2]] - first)


def _crease_normals(corners: Floats, cross: Floats, crease_degrees: float) -> Floats:
    """Per corner: the area-weighted mean of the faces around its point that lie within the crease
    angle of the corner's own face."""
    unit = cross / np.linalg.norm(cross, axis=1, keepdims=True)
    keys = np.round(corners / GRID).astype(np.int64)
    _, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group)
    starts = np.cumsum(counts) - counts
    repeats = counts[group]
    mine = np.repeat(np.arange(len(corners)), repeats)
    within = np.arange(len(mine)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    other = order[starts[group[mine]] + within]
    near = np.einsum("ij,ij->i", unit[mine // 3], unit[other // 3]) >= np.cos(
        np.radians(crease_degrees)
    )
    mine, other = mine[near], other[near]
    total = np.stack(
        [np.bincount(mine, cross[other // 3, axis], len(corners)) for axis in range(3)], axis=1
    )
    return np.asarray(total / np.linalg.norm(total, axis=1, keepdims=True), np.float64)


def _box_map(corners: Floats, face_vectors: Floats) -> Floats:
    """Texture coordinates by the axis that a face looks along most: walls map to (along, up)."""
    axis = np.argmax(np.abs(face_vectors) * (1.0, 1.0001, 1.0), axis=1)
    across = np.where(axis == 0, corners[:, 2], corners[:, 0])
    upward = np.where(axis == 1, corners[:, 2], -corners[:, 1])
    return np.stack([across, upward], axis=1)


def _weld(positions: Floats, normals: Floats, uvs: Floats, colors: Floats) -> MeshData:
    keys = np.concatenate(
        [positions / GRID, normals * 2000.0, uvs * 20000.0, colors * 255.0], axis=1
    )
    _, first, inverse = np.unique(
        np.round(keys).astype(np.int64), axis=0, return_index=True, return_inverse=True
    )
    triangles = inverse.reshape(-1, 3)
    return MeshData(
        positions[first], normals[first], uvs[first], colors[first], triangles.astype(np.int64)
    )
