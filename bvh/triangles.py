"""Triangles on their way into a BLAS: which ones are kept, and their boxes.

Positions are object-space float32 `[m, 3, 3]` (triangle, vertex, axis).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.layout import GEOMETRY_INDEX_MASK, GEOMETRY_OPAQUE
from bvh.tree import Bounds

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class TriangleSet:
    """Kept triangles with the ids a hit reports, and how many were dropped and why."""

    positions: F32  # [m, 3, 3]
    geometry: U32  # [m] geometry words: an index, perhaps with GEOMETRY_OPAQUE
    primitive: U32  # [m] index of the triangle within its object's mesh
    dropped_degenerate: int
    dropped_nonfinite: int


def opaque_words(geometry: U32, opaque: NDArray[np.bool_]) -> U32:
    """`[m]` geometry words as blocks have them: the index, with GEOMETRY_OPAQUE where the given
    word has it or the geometry is opaque as a whole, by `opaque [g]`."""
    index = geometry & np.uint32(GEOMETRY_INDEX_MASK)
    own = geometry & np.uint32(GEOMETRY_OPAQUE)
    return index | own | opaque[index] * np.uint32(GEOMETRY_OPAQUE)


def is_degenerate(positions: F32) -> NDArray[np.bool_]:
    """[m] True where the float32 cross product of two edges is exactly zero. No epsilon: one of
    any size would eat real triangles of a scene modelled in small units."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        e = positions[:, 1] - positions[:, 0]
        f = positions[:, 2] - positions[:, 0]
        zero = np.ones(len(positions), np.bool_)
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            zero &= e[:, j] * f[:, k] - e[:, k] * f[:, j] == 0
    return zero


def keep_usable(positions: F32, geometry: U32, primitive: U32) -> TriangleSet:
    """Drops triangles with a NaN or infinite coordinate and degenerate ones, counting both."""
    finite = np.asarray(np.isfinite(positions).all(axis=(1, 2)))
    degenerate = is_degenerate(positions) & finite
    keep = finite & ~degenerate
    if keep.all():
        return TriangleSet(positions, geometry, primitive, 0, 0)
    return TriangleSet(
        positions[keep],
        geometry[keep],
        primitive[keep],
        int(degenerate.sum()),
        int(len(finite) - finite.sum()),
    )


def triangle_bounds(positions: F32) -> Bounds:
    """[m, 2, 3] exact boxes."""
    bounds = np.empty((len(positions), 2, 3), np.float32)
    # Two binary operations are several times faster than a reduction over an axis of three.
    a, b, c = positions[:, 0], positions[:, 1], positions[:, 2]
    np.minimum(np.minimum(a, b), c, out=bounds[:, 0])
    np.maximum(np.maximum(a, b), c, out=bounds[:, 1])
    return bounds
