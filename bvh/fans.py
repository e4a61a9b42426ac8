"""Fans: up to four triangles about one vertex in a block of five, chosen before the tree is built.

A fan's triangles are consecutive about their apex (V2): each shares with the next an edge at the
apex, bit for bit, that the two traverse in opposite directions, and all have one geometry. A closed
fan of four uses all five vertices, an open one of three too. Every block here is a fan, of one
triangle or two as well, so that there is one way to pack them (`bvh.fan_blocks`).

Greedy, the largest fans first. In a round every candidate is known by a key, few free neighbours
outside it first (what is left over then stays connected and packs well), then the wasted area as
pairing counts it, then a hash; candidates whose key is the lowest at each of their triangles are
taken. Coarse keys and the hash keep the number of rounds small: in exact order a long strip would
be taken one fan a round.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.pairing import WORST_RATIO, shared_edges
from bvh.tree import Bounds, half_area

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

LARGEST_FAN = 4
# Bounds the work on a mesh made to be awkward; a million triangles take about ten rounds a size.
MOST_ROUNDS = 64
WASTE_STEPS = 32  # a unit of the waste ratio, in keys


@dataclass(frozen=True, slots=True)
class Fans:
    """The leaf primitives of the tree: one to four triangles each, counter-clockwise about the
    apex seen from their front. Blocks keep the order of their lowest triangle."""

    triangles: I32  # [n, 4], -1 where there is none
    corners: I32  # [n, 4] which original vertex of each triangle is the apex; 0 where there is none

    @property
    def sizes(self) -> I64:
        """[n] triangles of each block."""
        return np.asarray((self.triangles >= 0).sum(axis=1))


def fan_bounds(fans: Fans, triangle_bounds: Bounds) -> Bounds:
    """[n, 2, 3] union of each block's triangles."""
    bounds = triangle_bounds[fans.triangles[:, 0]]
    for k in range(1, LARGEST_FAN):
        rows = np.flatnonzero(fans.triangles[:, k] >= 0)
        other = triangle_bounds[fans.triangles[rows, k]]
        bounds[rows, 0] = np.minimum(bounds[rows, 0], other[:, 0])
        bounds[rows, 1] = np.maximum(bounds[rows, 1], other[:, 1])
    return bounds


def fan_triangles(
    positions: F32,
    geometry: U32,
    bounds: Bounds,
    worst_ratio: float = WORST_RATIO,
    allowed: Mask | None = None,
) -> Fans:
    """Greedy fans over `[m, 3, 3]` positions; triangles that fit nowhere stay single. `allowed[m]`
    says which triangles may be in fans of more than two (a large geometry index may not)."""
    count = len(positions)
    mate = _mates(positions, geometry)
    turned = _turned(mate)
    neighbours = np.where(mate >= 0, mate // 3, count).reshape(-1, 3)
    area = half_area(bounds).astype(np.float32)
    free = np.ones(count + 1, np.bool_)  # with one that stands for "no neighbour"
    free[count] = False
    rows: list[I64] = []
    for size in range(LARGEST_FAN, 1, -1):
        usable = free[:count]
        if size > 2 and allowed is not None:
            usable = usable & allowed
        fans = _candidates(turned, usable, size)
        waste = _waste(bounds, area, fans // 3)
        good = waste <= worst_ratio
        rows.append(_pad(_choose(fans[good], waste[good], neighbours, free)))
    # A single triangle's last vertex is V2, so that V0 is its first, as in other containers.
    rows.append(_pad(3 * np.flatnonzero(free[:count])[:, None] + 2))
    corner = np.concatenate(rows)
    triangles = np.where(corner >= 0, corner // 3, -1).astype(np.int32)
    lowest = np.where(corner >= 0, triangles, count).min(axis=1, initial=count)
    order = np.argsort(lowest, kind="stable")
    corners = np.where(corner >= 0, corner % 3, 0).astype(np.int32)
    return Fans(triangles[order], corners[order])


def _mates(positions: F32, geometry: U32) -> I64:
    """[3 m] the half-edge that each half-edge (3 * triangle + opposite corner) is shared with,
    -1 for none. Where more than two triangles meet at an edge, one couple is chosen."""
    a, b = shared_edges(positions, geometry)
    mate = np.full(3 * len(positions), -1, np.int64)
    mate[b[::-1]] = a[::-1]
    mate[a[::-1]] = b[::-1]
    held = np.flatnonzero(mate >= 0)
    mate[held[mate[mate[held]] != held]] = -1
    return mate


def _turned(mate: I64) -> I64:
    """[3 m] for each corner the same vertex's corner in the next triangle about it, or -1: the one
    across the edge from the corner's last vertex back to it."""
    corner = np.arange(len(mate))
    across = mate[corner - corner % 3 + (corner + 1) % 3]
    return np.asarray(np.where(across >= 0, across - across % 3 + (across + 1) % 3, -1))


def _candidates(turned: I64, usable: Mask, size: int) -> I64:
    """[k, size] apex corners of every fan of `size` different usable triangles."""
    fans = np.flatnonzero(np.repeat(usable, 3))[:, None]
    for _ in range(1, size):
        following = turned[fans[:, -1]]
        good = following >= 0
        good[good] = usable[following[good] // 3]
        for column in fans.T:
            good &= column // 3 != following // 3
        fans = np.concatenate([fans[good], following[good, None]], axis=1)
    if size == LARGEST_FAN:  # five vertices: the rim has to be closed
        fans = fans[turned[fans[:, -1]] == fans[:, 0]]
    return fans


def _waste(bounds: Bounds, area: F32, triangles: I64) -> F32:
    """[k] area of the union over the sum of areas; 2 where no box has any."""
    low, high = bounds[triangles[:, 0], 0], bounds[triangles[:, 0], 1]
    total = area[triangles[:, 0]]
    for column in triangles.T[1:]:
        np.minimum(low, bounds[column, 0], out=low)
        np.maximum(high, bounds[column, 1], out=high)
        total = total + area[column]
    union = half_area(np.stack([low, high], axis=1))
    ratio = np.full(len(triangles), 2.0)
    np.divide(union, total, out=ratio, where=total > 0)
    return ratio.astype(np.float32)


def _choose(fans: I64, waste: F32, neighbours: I64, free: Mask) -> I64:
    """The fans taken, [j, size]; their triangles leave `free`."""
    taken = [fans[:0]]
    index = np.arange(len(fans))
    # Keys, from the top: free neighbours, waste, hash, and the index that makes them unique.
    step = np.minimum(waste * np.float32(WASTE_STEPS), np.float32(63)).astype(np.int64)
    tie = (index * 0x9E3779B1 >> 12) & 0xFFFF
    fixed = (step << 16 | tie) << 32 | index
    for _ in range(MOST_ROUNDS):
        if not len(index):
            break
        triangles = fans[index] // 3
        open_sides = free[neighbours].sum(axis=1)
        key = (open_sides[triangles].sum(axis=1) << 54) + fixed[index]
        lowest = np.full(len(neighbours), np.iinfo(np.int64).max)
        for column in triangles.T:
            np.minimum.at(lowest, column, key)
        won = (lowest[triangles] == key[:, None]).all(axis=1)
        taken.append(fans[index[won]])
        free[triangles[won]] = False
        index = index[free[triangles].all(axis=1)]
    return np.concatenate(taken)


def _pad(corners: I64) -> I64:
    """[n, 4] of `[n, size]`, with -1."""
    padded = np.full((len(corners), LARGEST_FAN), -1, np.int64)
    padded[:, : corners.shape[1]] = corners
    return padded
