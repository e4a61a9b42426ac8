"""One mesh, of triangles or of spheres, with one material, in object space.

Owns the arrays of a mesh and their rules; knows nothing of files or buffers. Positions are
metres, uvs follow glTF (origin at the top-left texel), vertex colours are linear.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Mesh:
    """A glTF primitive: `v` vertices, `m` triangles, one material.

    With `radii`, a mesh of `m` spheres instead (`make_spheres`): `positions` are the centres, and
    row i of `triangles` is i three times, so that what counts primitives counts them alike.

    `normals` rows are unit, or all zero where the file stores none: such a corner is shaded with
    the geometric normal. Every array is C-contiguous.
    """

    name: str
    positions: F32  # [v, 3]
    normals: F32  # [v, 3]
    uvs: F32  # [v, 2]
    colors: U8  # [v, 4]
    triangles: U32  # [m, 3]
    material: int
    radii: F32 | None = None  # [m]

    def used_vertices(self) -> NDArray[np.bool_]:
        """[v] which vertices some triangle refers to (files carry stray ones)."""
        used = np.zeros(len(self.positions), bool)
        used[self.triangles] = True
        return used

    def extent(self) -> F32:
        """[k, 3] points whose box, wherever the mesh is placed, encloses it: the vertices that are
        used, or the corners of the boxes around spheres (those that are any)."""
        if self.radii is None:
            return self.positions[self.used_vertices()]
        corners = np.array(list(np.ndindex(2, 2, 2)), np.float32) * 2 - 1
        there = np.isfinite(self.positions).all(axis=1) & np.isfinite(self.radii) & (self.radii > 0)
        points = self.positions[there, None] + corners * self.radii[there, None, None]
        return np.asarray(points.reshape(-1, 3))


def make_mesh(
    name: str,
    positions: NDArray[np.floating],
    triangles: NDArray[np.integer],
    material: int = 0,
    normals: NDArray[np.floating] | None = None,
    uvs: NDArray[np.floating] | None = None,
    colors: NDArray[np.integer] | None = None,
) -> Mesh:
    """A Mesh from arrays of any float and integer type; absent attributes get their defaults.

    Indices are not checked here. A normal that is zero or not finite becomes "none stored", a uv
    that is not finite becomes 0; positions are kept as they are (values beyond float32 become
    infinite).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        points = np.ascontiguousarray(positions, np.float32).reshape(-1, 3)
        count = len(points)
        texels = np.zeros((count, 2), np.float32)
        if uvs is not None:
            texels = np.ascontiguousarray(uvs, np.float32).reshape(count, 2)
            if not np.isfinite(texels).all():
                texels = np.where(np.isfinite(texels), texels, np.float32(0))
    shades = np.full((count, 4), 255, np.uint8)
    if colors is not None:
        shades = np.ascontiguousarray(colors, np.uint8).reshape(count, 4)
    return Mesh(
        name=name,
        positions=points,
        normals=unit_rows(normals, count),
        uvs=texels,
        colors=shades,
        triangles=np.ascontiguousarray(triangles, np.uint32).reshape(-1, 3),
        material=material,
    )


def make_spheres(
    name: str, centers: NDArray[np.floating], radii: NDArray[np.floating], material: int = 0
) -> Mesh:
    """A mesh of spheres, `centers` [m, 3] and `radii` [m] in metres of object space. Those that are
    not finite or have no radius are left out of the build, which counts them. Textures lie on a
    sphere by longitude about +Y (u, 0.5 at +X, 0.75 at +Z) and angle from +Y (v)."""
    points = np.ascontiguousarray(centers, np.float32).reshape(-1, 3)
    sizes = np.ascontiguousarray(radii, np.float32).reshape(len(points))
    rows = np.repeat(np.arange(len(points), dtype=np.uint32)[:, None], 3, axis=1)
    return replace(make_mesh(name, points, rows, material), radii=sizes)


def unit_rows(vectors: NDArray[np.floating] | None, count: int) -> F32:
    """[count, 3] `vectors` scaled to length 1; rows without a direction become zero."""
    if vectors is None:
        return np.zeros((count, 3), np.float32)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rows = np.asarray(vectors, np.float64).reshape(count, 3)
        length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        known = np.isfinite(length) & (length > 0)
        scale = np.divide(1.0, length, out=np.zeros_like(length), where=known)
        unit = (rows * scale[:, None]).astype(np.float32)
    if not known.all():
        unit[~known] = 0
    return unit
