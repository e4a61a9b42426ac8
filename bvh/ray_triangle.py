"""Ray against one triangle in projected form: a watertight verdict, then t in float64.

The verdict is float32, every operation rounded on its own. The triangle is sheared so that the ray
becomes the axis of its dominant component, scaled by that component instead of divided (the order
of the KytyPS5 emitter; the idea is Woop, Benthin, Wald, "Watertight Ray/Triangle Intersection",
JCGT 2013). Two triangles with a shared edge project its two vertices to the same numbers and
compute the same edge value with opposite sign, so their verdicts agree. A float32 edge value that
is not zero has the right sign (rounding is monotonic); one that is zero is computed again in
float64, where the products are exact. What is still zero lies exactly on the edge and goes to one
owner by a rule that shifts the ray by two infinitesimals (simulation of simplicity), equal to the
emitter's rule for such edges.

t and the weights of the few triangles that are crossed are evaluated in float64 from the same
float32 vertices and ray, and rounded once. In float32 they would be off by R / h roundings for a
sliver of length R and height h: 11 of 29,000 mirror rays in a kitchen then hit the surface they
have just left, or miss a relative 1e-4 of t.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Flags = NDArray[np.bool_]

# Component order (x', y', z') for a dominant axis x, y, z: cyclic, so winding is kept.
AXIS_ORDER = np.array([[1, 2, 0], [2, 0, 1], [0, 1, 2]])
_FIRST = [1, 2, 0]  # edge i runs from vertex i+1 to vertex i+2
_SECOND = [2, 0, 1]


@dataclass(frozen=True, slots=True)
class Crossings:
    """Rays that cross their triangle's interior or an edge it owns, any t of either sign."""

    lanes: NDArray[np.int64]  # [h] positions in the input
    t: F32  # [h]
    weights: F32  # [3, h] barycentric weights of the three slots
    front: Flags  # [h] the slots run counter-clockwise seen from the ray's origin


def dominant_axis(direction: F32) -> NDArray[np.int64]:
    """Axis of the largest component of `[3, n]`; ties prefer x, then y."""
    x, y, z = np.abs(direction)
    axis = (x < y).astype(np.int64)
    axis[z > np.maximum(x, y)] = 2
    return axis


def intersect_triangles(corners: F32, origin: F32, direction: F32) -> Crossings:
    """Crossings of m rays with one triangle each.

    corners [3 (vertex), 3 (component), m], origin and direction [3, m], all with components in
    AXIS_ORDER of the ray's dominant axis.
    """
    relative = corners - origin
    depth = relative[:, 2]
    x = relative[:, 0] * direction[2] - direction[0] * depth
    y = relative[:, 1] * direction[2] - direction[1] * depth
    edges = np.empty_like(x)
    for i in range(3):
        first, second = _FIRST[i], _SECOND[i]
        np.subtract(x[second] * y[first], y[second] * x[first], out=edges[i])
    positive = edges > 0
    on_edge = (edges == 0).any(0)
    exact = np.flatnonzero(on_edge)
    if exact.size:
        positive[:, exact] = _exact_signs(x[:, exact], y[:, exact], direction[2, exact])
    votes = positive.sum(0)
    lanes = np.flatnonzero((votes == 0) | (votes == 3))
    if not lanes.size:
        none = np.empty(0, np.float32)
        return Crossings(lanes, none, np.empty((3, 0), np.float32), none.astype(np.bool_))
    sign = np.where(votes[lanes] == 3, 1.0, -1.0)
    wide = corners[:, :, lanes].astype(np.float64) - origin[:, lanes]
    scale = direction[2, lanes].astype(np.float64)
    depth = wide[:, 2]
    edges64 = _edges64(
        wide[:, 0] * scale - direction[0, lanes] * depth,
        wide[:, 1] * scale - direction[1, lanes] * depth,
    )
    # The verdict is float32's: weights that float64 finds on the other side are zero, so that t
    # stays between the vertices'.
    weights = np.maximum(edges64 * sign, 0.0)
    total = weights.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights /= total
        t = (weights * depth).sum(0) / scale
    front = sign * scale > 0
    # A triangle seen exactly edge-on has no area left and is not hit.
    keep = np.flatnonzero(total > 0)
    if keep.size != lanes.size:
        lanes, t, weights, front = lanes[keep], t[keep], weights[:, keep], front[keep]
    return Crossings(lanes, t.astype(np.float32), weights.astype(np.float32), front)


def _edges64(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Edge values; of float32 input their signs and zeros are exact, as the products are."""
    x64, y64 = x.astype(np.float64), y.astype(np.float64)
    return np.asarray(x64[_SECOND] * y64[_FIRST] - y64[_SECOND] * x64[_FIRST])


def _exact_signs(x: F32, y: F32, scale: F32) -> Flags:
    """Whether each edge value is positive, [3, m]; exact zeros by the ownership rule."""
    edges = _edges64(x, y)
    rising = y[_SECOND] > y[_FIRST]
    owned = np.where(y[_SECOND] == y[_FIRST], x[_SECOND] > x[_FIRST], rising ^ (scale < 0))
    return np.where(edges == 0, owned, edges > 0)
