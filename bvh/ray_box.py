"""Ray against four boxes in float32, as the guest node gives them.

Slab test (Kay and Kajiya 1986), each operation rounded on its own: `(bound - origin) * inverse`.
The exit distance grows by a few ULPs so that a ray through a shared edge cannot slip between two
boxes that touch (Ize, "Robust BVH Ray Traversal", JCGT 2013; GPURT's growth of 6).

Zero direction components have one rule, here: the axis gives no bound when the origin lies
between the planes (planes included) and rejects the ray otherwise. Multiplying by an infinite
reciprocal would give NaN for an origin on a plane.
"""

import numpy as np
from numpy.typing import NDArray

from bvh.layout import DEFAULT_GROWTH
from bvh.rays import SMALLEST_COMPONENT

F32 = NDArray[np.float32]

# Exit scale for `growth` ULPs, as GPURT: 1 + growth * 2^-24, rounded once to float32.
EXIT_SCALE = np.float32(1.0 + DEFAULT_GROWTH * 2.0**-24)


def flush_components(direction: F32) -> F32:
    """`direction` with components below SMALLEST_COMPONENT replaced by zero."""
    return np.where(np.abs(direction) < SMALLEST_COMPONENT, np.float32(0.0), direction)


def invert_components(direction: F32) -> F32:
    """1 / direction of flushed components; 0 stands for "see the zero rule", so nothing is
    infinite."""
    zero = direction == 0
    return np.where(zero, np.float32(0.0), np.float32(1.0) / np.where(zero, 1, direction))


def intersect_boxes(
    bounds: F32, origin: F32, inverse: F32, t_min: F32, t_limit: F32
) -> tuple[F32, NDArray[np.bool_]]:
    """Entry distances and hits of m rays with c boxes each.

    Shapes: bounds [c, 2 (min, max), 3, m], origin and inverse [3, m], t_min and t_limit [m].
    Returns entry (at least t_min) and hit, both [c, m]. NaN bounds miss.
    """
    planes = bounds - origin
    planes *= inverse
    low = np.minimum(planes[:, 0], planes[:, 1])
    high = np.maximum(planes[:, 0], planes[:, 1])
    if not inverse.all():
        zero = inverse == 0
        # Inclusive planes; NaN bounds fail both comparisons and reject.
        inside = (bounds[:, 0] <= origin) & (origin <= bounds[:, 1])
        unbounded, empty = np.float32(-np.inf), np.float32(np.inf)
        low = np.where(zero, np.where(inside, unbounded, empty), low)
        high = np.where(zero, np.where(inside, empty, unbounded), high)
    entry = np.maximum(low[:, 0], low[:, 1])
    np.maximum(entry, low[:, 2], out=entry)
    np.maximum(entry, t_min, out=entry)
    leave = np.minimum(high[:, 0], high[:, 1])
    np.minimum(leave, high[:, 2], out=leave)
    leave *= EXIT_SCALE
    np.minimum(leave, t_limit, out=leave)
    return entry, entry <= leave
