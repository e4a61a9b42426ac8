"""Which fans there are among neighbours, and which are taken: what decides in the twin of
fan_near.wgsl. Half-edges and corners are 3 * triangle + corner."""

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.pair_edges import are_mates, tile_edges, waste
from bvh.gpu.pair_records import CORNER_SHIFT, NEAR_TILE, NONE, REMOVED

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
Mask = NDArray[np.bool_]

FAN_ROUNDS = 5  # a size
WASTE_BITS = 4  # waste of a fan is in steps of 1/16


def _next_corner(corner: I64) -> I64:
    return np.asarray(corner - corner % 3 + (corner + 1) % 3)


def find_mates(corners: U32, ids: U32, usable: Mask) -> I64:
    """[3 n] the half-edge across, -1 for none: of those in a tile that name one edge in one
    direction, the lowest."""
    a, b = tile_edges(corners, usable)
    good = are_mates(a, b, corners, ids)
    mate = np.full(3 * len(corners), -1, np.int64)
    mate[a[good]], mate[b[good]] = b[good], a[good]
    return mate


def _find_fans(turned: I64, usable: Mask, size: int) -> I64:
    """[k, size] apex corners."""
    fans = np.flatnonzero(np.repeat(usable, 3))[:, None]
    for _ in range(1, size):
        following = turned[fans[:, -1]]
        good = following >= 0
        for column in fans.T:
            good &= column // 3 != following // 3
        fans = np.concatenate([fans[good], following[good, None]], axis=1)
    if size == 4:
        fans = fans[turned[fans[:, 3]] == fans[:, 0]]
    return fans


def choose_fans(mate: I64, boxes: F32, usable: Mask, sayable: Mask) -> U32:
    """`members [n, 4]` by the mates `[3 n]` of half-edges (-1 for none); `sayable` are the
    triangles that a fan of three or four can name."""
    count = len(boxes)
    corner = np.arange(3 * count)
    across = mate[_next_corner(corner)]
    turned = np.where(across >= 0, _next_corner(across), -1)
    neighbours = np.where(mate >= 0, mate // 3, count).reshape(-1, 3)
    open_ = np.append(usable, False)
    members = np.full((count, 4), NONE, np.uint32)
    for size in (4, 3, 2):
        fans = _find_fans(turned, usable, size)
        steps = waste([boxes[column] for column in fans.T // 3], WASTE_BITS)
        fans, steps = fans[steps != NONE], steps[steps != NONE]
        fixed = steps << 10 | fans[:, 0] % (3 * NEAR_TILE) * 421 & 1023
        for _ in range(FAN_ROUNDS):
            good = open_[fans // 3].all(axis=1)
            if size > 2:
                good &= sayable[fans // 3].all(axis=1)
            fans, fixed = fans[good], fixed[good]
            sides = open_[neighbours].sum(axis=1)
            triangle = fans // 3
            key = sides[triangle].sum(axis=1) << 15 | fixed
            lowest = np.full(count, NONE, np.int64)
            for column in triangle.T:
                np.minimum.at(lowest, column, key)
            won = (lowest[triangle] == key[:, None]).all(axis=1)
            taken = fans[won]
            members[taken[:, 0] // 3, :size] = taken % 3 << CORNER_SHIFT | taken // 3
            open_[taken // 3] = False
    single = np.flatnonzero(open_[:count])
    members[single, 0] = 2 << CORNER_SHIFT | single
    members[~usable, 0] = REMOVED
    return members
