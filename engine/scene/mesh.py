"""One triangle mesh with one material, in object space.

Owns the arrays of a mesh and their rules; knows nothing of files or buffers. Positions are
metres, uvs follow glTF (origin at the top-left texel), vertex colours are linear.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Mesh:
    """A glTF primitive: `v` vertices, `m` triangles, one material.

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

    def used_vertices(self) -> NDArray[np.bool_]:
        """[v] which vertices some triangle refers to (files carry stray ones)."""
        used = np.zeros(len(self.positions), bool)
        used[self.triangles] = True
        return used


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
