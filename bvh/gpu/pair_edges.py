"""What the twins of the pairing stages share: edges by their vertices' bits, the waste of a pair,
rounds of mutual choices. The same as edge.wgsl and rank_pair.wgsl."""

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.pair_records import CORNER_SHIFT, NEAR_TILE, NONE, REMOVED, TRIANGLE_MASK
from bvh.pairing import WORST_RATIO

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
Mask = NDArray[np.bool_]

WASTE_BITS = 9  # waste of a pair is in steps of 1/512


def _hash_vertices(bits: U32) -> U32:
    """`[..., 3]` words to `[...]`."""
    h = bits[..., 0] * np.uint32(0x9E3779B1)
    h = ((h ^ h >> np.uint32(15)) + bits[..., 1]) * np.uint32(0x85EBCA77)
    h = ((h ^ h >> np.uint32(13)) + bits[..., 2]) * np.uint32(0xC2B2AE3D)
    return np.asarray(h ^ h >> np.uint32(16))


def edge_keys(corners: U32) -> tuple[U32, Mask]:
    """(key, direction) of every half-edge `[3 n]` of triangles `[n, 3, 3]`."""
    vertex = _hash_vertices(corners)
    start, end = np.roll(vertex, -1, axis=1).reshape(-1), np.roll(vertex, -2, axis=1).reshape(-1)
    k = start + end
    k = (k ^ k >> np.uint32(15)) * np.uint32(0x2C1B3C6D)
    return np.maximum(k ^ k >> np.uint32(12), np.uint32(1)), start > end


def tile_edges(corners: U32, usable: Mask) -> tuple[I64, I64]:
    """(a, b), the lowest half-edges of both directions of every edge that has both in a tile; as
    edge_slots.wgsl keeps them."""
    key, direction = edge_keys(corners)
    half_edge = np.flatnonzero(np.repeat(usable, 3))
    tile = (half_edge // (3 * NEAR_TILE)).astype(np.uint64) << np.uint64(33)
    slot = tile | key[half_edge].astype(np.uint64) << np.uint64(1) | direction[half_edge]
    slots, first = np.unique(slot, return_index=True)
    # Both directions of one edge stand side by side.
    both = np.flatnonzero(slots[1:] == slots[:-1] + np.uint64(1))
    both = both[slots[both] % 2 == 0]
    return half_edge[first[both]], half_edge[first[both + 1]]


def are_mates(a: I64, b: I64, corners: U32, ids: U32) -> Mask:
    """Whether half-edges `a` and `b` are the two sides of one edge, of different triangles."""
    s, t = a // 3, b // 3
    good = (s != t) & (ids[s, 0] == ids[t, 0])
    for i, j in ((1, 2), (2, 1)):
        good &= (corners[s, (a + i) % 3] == corners[t, (b + j) % 3]).all(axis=1)
    return np.asarray(good)


def _scaled_area(box: F32, factor: F32) -> F32:
    half = np.float32(0.5)
    side = (box[:, 1] * half - box[:, 0] * half) * factor[:, None]
    x, y, z = side[:, 0], side[:, 1], side[:, 2]
    return np.asarray(x * y + y * z + z * x)


def waste(boxes: list[F32], bits: int) -> I64:
    """Of blocks of one box `[n, 2, 3]` of each array: the common box's area over the sum of areas,
    in steps of 1 / 2^bits rounded up; NONE beyond WORST_RATIO."""
    half = np.float32(0.5)
    joint_box = boxes[0].copy()
    for box in boxes[1:]:
        np.minimum(joint_box[:, 0], box[:, 0], out=joint_box[:, 0])
        np.maximum(joint_box[:, 1], box[:, 1], out=joint_box[:, 1])
    largest = (joint_box[:, 1] * half - joint_box[:, 0] * half).max(axis=1, initial=0)
    exponent = np.clip(largest.view(np.uint32) >> np.uint32(23), 1, 253).astype(np.uint32)
    factor = ((np.uint32(254) - exponent) << np.uint32(23)).view(np.float32)
    joint = _scaled_area(joint_box, factor)
    total = np.zeros(len(joint), np.float32)
    for box in boxes:
        total = total + _scaled_area(box, factor)
    steps = np.zeros(len(joint), np.int64)
    for bit in (1 << i for i in range(bits, -1, -1)):
        less = (steps + (bit - 1)).astype(np.float32) * np.float32(2.0**-bits)
        steps += np.where(joint > total * less, bit, 0)
    bad = ~(total > 0) | (joint > total * np.float32(WORST_RATIO))
    return np.where(bad, NONE, steps)


def rank_candidates(a: I64, b: I64, corners: U32, ids: U32, boxes: F32) -> tuple[I64, U32]:
    """(partner, rank), each `[n, 3]`, of every half-edge of triangles `corners [n, 3, 3]`: what it
    could be paired over of the half-edges `a` and `b`, and the order in which candidates are taken
    (NONE, NONE without one)."""
    good = are_mates(a, b, corners, ids)
    a, b = a[good], b[good]
    steps = waste([boxes[a // 3], boxes[b // 3]], WASTE_BITS)
    a, b, steps = a[steps != NONE], b[steps != NONE], steps[steps != NONE]
    rank_of = steps.astype(np.uint32) << np.uint32(22)
    rank_of |= np.minimum(a, b).astype(np.uint32) * np.uint32(0x9E3779B1) >> np.uint32(10)
    partner = np.full(3 * len(corners), NONE, np.int64)
    rank = np.full(3 * len(corners), NONE, np.uint32)
    partner[a], partner[b] = b, a
    rank[a] = rank[b] = rank_of
    return partner.reshape(-1, 3), rank.reshape(-1, 3)


def choose(partner: I64, rank: U32, mates: U32) -> tuple[U32, U32]:
    """(own, target) half-edges `[n]`: the best candidate of every triangle without a mate whose
    partner has none either; NONE, NONE without one."""
    there = partner != NONE
    free = there & (mates[:, None] == NONE)
    free &= mates[np.where(there, partner // 3, 0)] == NONE
    ranked = np.where(free, rank, np.uint32(NONE))
    corner = ranked.argmin(axis=1)
    row = np.arange(len(mates))
    found = ranked.min(axis=1, initial=NONE) != NONE
    own = np.where(found, 3 * row + corner, NONE).astype(np.uint32)
    return own, np.where(found, partner[row, corner], NONE).astype(np.uint32)


def settle(own: U32, target: U32, mates: U32) -> None:
    """Mutual choices become mates."""
    row = np.flatnonzero(own != NONE)
    row = row[own[target[row] // 3] == target[row]]
    corner = own[row] % 3 << np.uint32(CORNER_SHIFT)
    mates[row] = corner | target[row] // 3


def mark_starts(mates: U32) -> U32:
    """1 for every triangle at whose place a block stands."""
    other = mates & np.uint32(TRIANGLE_MASK)
    second = (mates < REMOVED) & (other < np.arange(len(mates)))
    return (~second & (mates != REMOVED)).astype(np.uint32)
