"""The coordinates that a BLAS may hold, and what happens to others.

The triangle test multiplies two edges and a distance in float32: with unit directions, the product
of three lengths. It overflows near 1e13 and underflows near 1e-13, and rays then miss without a
sign that they did. So the largest coordinate of a BLAS lies between SMALLEST and LARGEST, which
leaves room for rays that start a few sizes away and for parts far smaller than the whole. An
instance's transform scales directions as it does lengths, so that t stays and its factors come
back into range: `passes.prepare` rescales meshes so. Triangles alone are refused, as nobody could
tell their rays.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.layout import GEOMETRY_INDEX_MASK
from engine.gpu.errors import UserError

LARGEST = 2.0**40  # 1.1e12
SMALLEST = 2.0**-40  # 9.1e-13; of the largest coordinate, not of every one


def largest_coordinate(points: NDArray[Any]) -> float:
    """The largest magnitude among the finite components of `points`, 0 without any."""
    if not points.size:
        return 0.0
    largest = max(float(points.max()), -float(points.min()))
    if math.isfinite(largest):
        return largest
    finite = points[np.isfinite(points)]
    return float(np.abs(finite).max()) if finite.size else 0.0


def in_range(largest: float) -> bool:
    """Whether geometry with that largest coordinate can be traced as it is; nothing can (0)."""
    return largest == 0.0 or SMALLEST <= largest <= LARGEST


def scale_into_range(largest: float) -> float:
    """The power of two (so that no coordinate is rounded) to multiply with; 1 within the range."""
    return 1.0 if in_range(largest) else 2.0 ** -math.frexp(largest)[1]


def check_range(triangles: NDArray[Any], geometry: NDArray[np.uint32] | None = None) -> None:
    """UserError where `triangles [m, 3, 3]` are out of range; it names a triangle, its geometry if
    known, the coordinate and the range. Triangles that are not finite do not count."""
    if in_range(largest_coordinate(triangles)):
        return
    sizes = np.abs(triangles).max(axis=(1, 2), initial=0.0)
    sizes[~np.isfinite(sizes)] = 0.0
    worst = int(sizes.argmax())
    largest = float(sizes[worst])
    if not in_range(largest):
        where = ""
        if geometry is not None:
            where = f" of geometry {int(geometry[worst]) & GEOMETRY_INDEX_MASK}"
        raise UserError(f"triangle {worst}{where}: {describe(largest)}")


def describe(largest: float) -> str:
    """What is wrong with that largest coordinate."""
    return (
        f"a largest coordinate of {largest:.3g} is outside the range of the triangle test, "
        f"{SMALLEST:.2g} to {LARGEST:.2g}"
    )
