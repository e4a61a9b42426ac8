"""Pairs of triangles that share a block, chosen before the tree is built.

Two triangles can share a block when they have an edge in common, bit for bit, that they traverse
in opposite directions (so that block types 0 = V0,V1,V2 and 1 = V1,V3,V2 keep both windings), and
one geometry word (so one opacity). Of all candidates those are taken first whose common box wastes
least: the greedy matching in order of `area(union) / (area(a) + area(b))`, found in rounds in
which every triangle names its best partner and mutual choices become pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.tree import Bounds, half_area

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# A pair replaces two leaves, of expected cost area(a) + area(b), by one of area(union) and saves
# a slot of their parent, which is worth about a third of a node visit at the usual fill of three.
WORST_RATIO = 1.3


@dataclass(frozen=True, slots=True)
class Blocks:
    """The leaf primitives of the tree: one or two triangles each."""

    first: I32  # [n] triangle that becomes triangle 0
    second: I32  # [n] triangle that becomes triangle 1, or -1
    first_corner: I32  # [n] which original vertex of `first` is V0 (0 for a single triangle)
    second_corner: I32  # [n] which original vertex of `second` is V3


def single_blocks(triangle_count: int) -> Blocks:
    """Every triangle in a block of its own."""
    zeros = np.zeros(triangle_count, np.int32)
    return Blocks(
        np.arange(triangle_count, dtype=np.int32),
        np.full(triangle_count, -1, np.int32),
        zeros,
        zeros,
    )


def block_bounds(blocks: Blocks, triangle_bounds: Bounds) -> Bounds:
    """[n, 2, 3] union of each block's triangles."""
    bounds = triangle_bounds[blocks.first]
    pair = np.flatnonzero(blocks.second >= 0)
    other = triangle_bounds[blocks.second[pair]]
    bounds[pair, 0] = np.minimum(bounds[pair, 0], other[:, 0])
    bounds[pair, 1] = np.maximum(bounds[pair, 1], other[:, 1])
    return bounds


def pair_triangles(
    positions: F32, geometry: U32, bounds: Bounds, worst_ratio: float = WORST_RATIO
) -> Blocks:
    """Greedy pairs over `[m, 3, 3]` positions; triangles without a partner stay single. Blocks
    keep the order of their first triangle."""
    edge_a, edge_b = shared_edges(positions, geometry)
    ratio = _waste(bounds, edge_a // 3, edge_b // 3)
    good = ratio <= worst_ratio
    edge_a, edge_b = edge_a[good], edge_b[good]
    chosen = _match(edge_a // 3, edge_b // 3, ratio[good], len(positions))
    edge_a, edge_b = edge_a[chosen], edge_b[chosen]
    swap = edge_a > edge_b
    first = np.where(swap, edge_b, edge_a)
    second = np.where(swap, edge_a, edge_b)

    partner = np.full(len(positions), -1, np.int32)
    corner = np.zeros(len(positions), np.int32)
    is_second = np.zeros(len(positions), np.bool_)
    partner[first // 3] = second // 3
    corner[first // 3] = first % 3
    corner[second // 3] = second % 3
    is_second[second // 3] = True
    lead = np.flatnonzero(~is_second).astype(np.int32)
    mate = partner[lead]
    return Blocks(lead, mate, corner[lead], np.where(mate >= 0, corner[mate], 0).astype(np.int32))


def shared_edges(positions: F32, geometry: U32) -> tuple[I64, I64]:
    """Candidates as half-edges: number 3 * triangle + corner, the edge being opposite that
    corner. Where more than two triangles meet at an edge only neighbours in sorted order are
    tried."""
    vertex = _vertex_ids(positions)
    start = np.roll(vertex, -1, axis=1).reshape(-1)
    end = np.roll(vertex, -2, axis=1).reshape(-1)
    low, high = np.minimum(start, end), np.maximum(start, end)
    key = low.astype(np.uint64) << np.uint64(32) | high.astype(np.uint64)
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order[1:]] == key[order[:-1]])
    a, b = order[same], order[same + 1]
    usable = (start[a] == end[b]) & (start[a] != end[a])
    usable &= (a // 3 != b // 3) & (geometry[a // 3] == geometry[b // 3])
    a, b = a[usable], b[usable]
    # Vertex ids come from a hash: what a block stores must be equal bit for bit.
    bits = np.ascontiguousarray(positions).view(np.uint32).reshape(-1, 3)
    a_start, a_end = _corner(a, 1), _corner(a, 2)
    b_start, b_end = _corner(b, 1), _corner(b, 2)
    exact = (bits[a_start] == bits[b_end]).all(axis=1)
    exact &= (bits[a_end] == bits[b_start]).all(axis=1)
    return a[exact], b[exact]


def _corner(half_edge: I64, step: int) -> I64:
    """Row in `[3 m]` vertices of the corner `step` after the half-edge's own."""
    return np.asarray(half_edge - half_edge % 3 + (half_edge + step) % 3)


def _vertex_ids(positions: F32) -> NDArray[np.uint32]:
    """[m, 3] equal numbers for equal positions, by a 64-bit hash of the bits."""
    bits = np.ascontiguousarray(positions).view(np.uint32).reshape(-1, 3).astype(np.uint64)
    hashed = bits[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    hashed ^= hashed >> np.uint64(29)
    hashed += bits[:, 1]
    hashed *= np.uint64(0xBF58476D1CE4E5B9)
    hashed ^= hashed >> np.uint64(32)
    hashed += bits[:, 2]
    hashed *= np.uint64(0x94D049BB133111EB)
    hashed ^= hashed >> np.uint64(31)
    order = np.argsort(hashed)
    ranked = hashed[order]
    fresh = np.empty(len(order), np.bool_)
    fresh[:1] = False
    np.not_equal(ranked[1:], ranked[:-1], out=fresh[1:])
    ids = np.empty(len(order), np.uint32)
    ids[order] = np.cumsum(fresh, dtype=np.uint32)
    return ids.reshape(-1, 3)


def _waste(bounds: Bounds, a: I64, b: I64) -> F32:
    """Area of the union over the sum of areas; 2 where both boxes have none."""
    union = np.empty((len(a), 2, 3), np.float32)
    np.minimum(bounds[a, 0], bounds[b, 0], out=union[:, 0])
    np.maximum(bounds[a, 1], bounds[b, 1], out=union[:, 1])
    area = half_area(bounds)
    total = area[a] + area[b]
    ratio = np.full(len(a), 2.0)
    np.divide(half_area(union), total, out=ratio, where=total > 0)
    return ratio.astype(np.float32)


def _match(a: I64, b: I64, ratio: F32, count: int) -> I64:
    """Indices of a matching, cheapest candidates first. Ranks are unique, so each round's mutual
    choices are exactly those that the sequential greedy would make."""
    by_rank = np.argsort(ratio, kind="stable")
    a, b = a[by_rank], b[by_rank]
    open_rank = np.arange(len(a))
    free = np.ones(count, np.bool_)
    taken = []
    while len(open_rank):
        best = np.full(count, len(a), np.int64)
        ends_a, ends_b = a[open_rank], b[open_rank]
        # Later writes win, so the lowest rank is written last.
        best[ends_a[::-1]] = open_rank[::-1]
        lowest = np.full(count, len(a), np.int64)
        lowest[ends_b[::-1]] = open_rank[::-1]
        np.minimum(best, lowest, out=best)
        mutual = (best[ends_a] == open_rank) & (best[ends_b] == open_rank)
        won = open_rank[mutual]
        taken.append(won)
        free[a[won]] = False
        free[b[won]] = False
        open_rank = open_rank[free[ends_a] & free[ends_b]]
    ranks = np.concatenate(taken) if taken else np.empty(0, np.int64)
    return np.asarray(by_rank[ranks])
