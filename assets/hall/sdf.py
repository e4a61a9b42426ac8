"""Signed distances and the surface nets that turn them into triangles: how the figure is modelled.

A shape is a function from points [n, 3] to distances [n] (negative inside, metres; only roughly a
distance after blending). Surface nets: Gibson 1998, "Constrained Elastic SurfaceNets"; one vertex
a cell that the surface crosses, then moved onto the surface.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from assets.hall.geometry import GRID, Floats, Ints, MeshData

Shape = Callable[[Floats], Floats]
GRADIENT_STEP = 1e-4


def round_cone(start: ArrayLike, end: ArrayLike, start_radius: float, end_radius: float) -> Shape:
    """A capsule whose radius runs linearly between its ends."""
    a, b = np.asarray(start, np.float64), np.asarray(end, np.float64)

    def distance(points: Floats) -> Floats:
        axis = b - a
        part = np.clip((points - a) @ axis / (axis @ axis), 0.0, 1.0)
        gap = np.linalg.norm(points - a - part[:, None] * axis, axis=1)
        return np.asarray(gap - (start_radius + (end_radius - start_radius) * part))

    return distance


def ellipsoid(center: ArrayLike, radii: ArrayLike) -> Shape:
    """An ellipsoid along the axes (the usual first-order distance)."""
    middle, size = np.asarray(center, np.float64), np.asarray(radii, np.float64)

    def distance(points: Floats) -> Floats:
        scaled = (points - middle) / size
        length = np.linalg.norm(scaled, axis=1)
        slope = np.linalg.norm(scaled / size, axis=1)
        return np.asarray(length * (length - 1.0) / np.maximum(slope, 1e-9))

    return distance


def blend(shapes: list[Shape], softness: float) -> Shape:
    """The union, with seams filled over about `softness` metres (polynomial smooth minimum)."""

    def distance(points: Floats) -> Floats:
        total = shapes[0](points)
        for shape in shapes[1:]:
            other = shape(points)
            mix = np.maximum(softness - np.abs(total - other), 0.0) / softness
            total = np.minimum(total, other) - mix * mix * softness * 0.25
        return total

    return distance


def carve(body: Shape, hole: Shape, softness: float = 0.004) -> Shape:
    """The body without the hole, the rim rounded."""

    def distance(points: Floats) -> Floats:
        inside, outside = body(points), -hole(points)
        mix = np.maximum(softness - np.abs(inside - outside), 0.0) / softness
        return np.asarray(np.maximum(inside, outside) + mix * mix * softness * 0.25)

    return distance


def mirrored(shape: Shape) -> Shape:
    """The shape and its mirror image in x."""
    return lambda points: np.minimum(shape(points), shape(points * (-1.0, 1.0, 1.0)))


def polygonise(shape: Shape, low: ArrayLike, high: ArrayLike, cell: float) -> MeshData:
    """Surface nets over the box from `low` to `high` with cubes of `cell` metres; normals from the
    gradient, texture coordinates in metres (x, y)."""
    start = np.asarray(low, np.float64)
    counts = np.ceil((np.asarray(high) - start) / cell).astype(int) + 1
    axes = [start[k] + cell * np.arange(counts[k]) for k in range(3)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    field = shape(grid.reshape(-1, 3)).reshape(tuple(counts))
    vertices, index = _cell_vertices(field, start, cell)
    triangles = _quads(field < 0.0, index)
    for _ in range(2):
        gradient = _gradient(shape, vertices)
        slope = np.maximum(np.einsum("ij,ij->i", gradient, gradient), 0.05)
        step = shape(vertices)[:, None] * gradient / slope[:, None]
        vertices = vertices - np.clip(step, -0.5 * cell, 0.5 * cell)
    vertices = np.round(vertices / GRID) * GRID
    normals = _gradient(shape, vertices)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    corners = vertices[triangles]
    area = np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    triangles = triangles[area > 1e-9]
    uvs = np.stack([vertices[:, 0], -vertices[:, 1]], axis=1)
    return MeshData(vertices, normals, uvs, np.ones((len(vertices), 4)), triangles)


def _cell_vertices(field: Floats, start: Floats, cell: float) -> tuple[Floats, Ints]:
    """The mean of the edge crossings of every crossed cell, and the cells' vertex numbers."""
    shape = tuple(count - 1 for count in field.shape)
    total = np.zeros((*shape, 3))
    hits = np.zeros(shape)

    def window(offset: tuple[int, ...]) -> Floats:
        return field[tuple(slice(o, o + n) for o, n in zip(offset, shape, strict=True))]

    for axis in range(3):
        for first in (0, 1):
            for second in (0, 1):
                offset = [0, 0, 0]
                offset[(axis + 1) % 3], offset[(axis + 2) % 3] = first, second
                a = window(tuple(offset))
                ahead = offset.copy()
                ahead[axis] = 1
                b = window(tuple(ahead))
                crossed = (a < 0.0) != (b < 0.0)
                part = np.where(crossed, a / np.where(crossed, a - b, 1.0), 0.0)
                place = np.array(offset, np.float64) + part[..., None] * np.eye(3)[axis]
                total += place * crossed[..., None]
                hits += crossed
    used = hits > 0
    index = np.full(shape, -1, np.int64)
    index[used] = np.arange(int(used.sum()))
    cells = np.argwhere(used)
    return start + cell * (cells + total[used] / hits[used][:, None]), index


def _quads(inside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], index: Ints) -> Ints:
    """Two triangles for every grid edge that the surface crosses, between its four cells."""
    triangles = []
    for axis in range(3):
        first, second = (axis + 1) % 3, (axis + 2) % 3
        core = [slice(1, -1)] * 3
        core[axis] = slice(0, -1)
        ahead = core.copy()
        ahead[axis] = slice(1, None)
        a, b = inside[tuple(core)], inside[tuple(ahead)]
        edges = np.argwhere(a != b)
        place = edges + 1
        place[:, axis] -= 1
        leaving = a[tuple(edges.T)]  # inside to outside along +axis: the front looks along +axis
        around = []
        for step_first, step_second in ((1, 1), (0, 1), (0, 0), (1, 0)):
            corner = place.copy()
            corner[:, first] -= step_first
            corner[:, second] -= step_second
            around.append(index[tuple(corner.T)])
        quad = np.stack(around, axis=1)
        quad = np.where(leaving[:, None], quad, quad[:, ::-1])
        triangles += [quad[:, [0, 1, 2]], quad[:, [0, 2, 3]]]
    return np.concatenate(triangles)


def _gradient(shape: Shape, points: Floats) -> Floats:
    steps = GRADIENT_STEP * np.eye(3)
    columns = [
        (shape(points + step) - shape(points - step)) / (2 * GRADIENT_STEP) for step in steps
    ]
    return np.stack(columns, axis=1)
