"""Which fans there are among neighbours, and which are taken: what decides in the twin of
fan_near.wgsl. Half-edges and corners are 3 * triangle + corner."""

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.pair_edges import edge_keys
from bvh.gpu.pair_records import CORNER_SHIFT, NEAR_TILE, NONE, REMOVED
from bvh.pairing import WORST_RATIO

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
Mask = NDArray[np.bool_]

FAN_ROUNDS = 5  # a size
_STEP = np.float32(2**-4)


def _next_corner(corner: I64) -> I64:
    return np.asarray(corner - corner % 3 + (corner + 1) % 3)


def find_mates(corners: U32, ids: U32, usable: Mask) -> I64:
    """[3 n] the half-edge across, -1 for none: of those in a tile that name one edge in one
    direction, the lowest."""
    key, direction = edge_keys(corners)
    half_edge = np.flatnonzero(np.repeat(usable, 3))
    tile = (half_edge // (3 * NEAR_TILE)).astype(np.uint64) << np.uint64(33)
    slot = tile | key[half_edge].astype(np.uint64) << np.uint64(1) | direction[half_edge]
    slots, first = np.unique(slot, return_index=True)
    # Both directions of one edge stand side by side.
    both = np.flatnonzero(slots[1:] == slots[:-1] + np.uint64(1))
    both = both[slots[both] % 2 == 0]
    a, b = half_edge[first[both]], half_edge[first[both + 1]]
    s, t = a // 3, b // 3
    good = (s != t) & (ids[s, 0] == ids[t, 0])
    for i, j in ((1, 2), (2, 1)):
        good &= (corners[s, (a + i) % 3] == corners[t, (b + j) % 3]).all(axis=1)
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


def _scaled_area(box: F32, factor: F32) -> F32:
    half = np.float32(0.5)
    side = (box[:, 1] * half - box[:, 0] * half) * factor[:, None]
    x, y, z = side[:, 0], side[:, 1], side[:, 2]
    return np.asarray(x * y + y * z + z * x)


def _fan_waste(fans: I64, boxes: F32) -> I64:
    """Steps of 1/16, rounded up; NONE beyond WORST_RATIO."""
    triangle = fans // 3
    joint_box = boxes[triangle[:, 0]]
    for column in triangle.T[1:]:
        np.minimum(joint_box[:, 0], boxes[column, 0], out=joint_box[:, 0])
        np.maximum(joint_box[:, 1], boxes[column, 1], out=joint_box[:, 1])
    half = np.float32(0.5)
    largest = (joint_box[:, 1] * half - joint_box[:, 0] * half).max(axis=1, initial=0)
    exponent = np.clip(largest.view(np.uint32) >> np.uint32(23), 1, 253).astype(np.uint32)
    factor = ((np.uint32(254) - exponent) << np.uint32(23)).view(np.float32)
    joint = _scaled_area(joint_box, factor)
    total = np.zeros(len(fans), np.float32)
    for column in triangle.T:
        total = total + _scaled_area(boxes[column], factor)
    steps = np.zeros(len(fans), np.int64)
    for bit in (16, 8, 4, 2, 1):
        less = (steps + (bit - 1)).astype(np.float32) * _STEP
        steps += np.where(joint > total * less, bit, 0)
    bad = ~(total > 0) | (joint > total * np.float32(WORST_RATIO))
    return np.where(bad, NONE, steps)


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
        steps = _fan_waste(fans, boxes)
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
