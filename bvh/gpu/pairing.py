"""Triangles to blocks on the GPU: pairs among neighbours in input order, then the blocks in a row.

The rules are those of `bvh.pairing`: an edge in common bit for bit, in opposite directions, one
geometry, and a common box that wastes little. Within a tile of 256 triangles every edge has a slot
of a hash table in workgroup memory, which keeps the lowest half-edge of each direction: these two
are candidates for a pair. Then in rounds every triangle without a partner names the best of its
candidates, and mutual choices become pairs. That is the parallel form of taking the best candidate
of all first; ROUNDS of it leave few that the greedy matching would still find.

Everything that decides is integer arithmetic or float32 products kept apart, and nothing depends on
the order of lanes, so the twins give the same bytes on any adapter.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import (
    BUILD_STATE,
    REMOVED_DEGENERATE,
    REMOVED_NONFINITE,
    group_count,
)
from bvh.gpu.pair_records import (
    CORNER_SHIFT,
    MOST_TRIANGLES,
    NEAR_TILE,
    NONE,
    PAIR_PARAMETERS,
    REMOVED,
)
from bvh.gpu.triangle_setup import triangle_setup
from bvh.pairing import WORST_RATIO
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.primitives.scan import ExclusiveScan
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

ROUNDS = 4
_TRIANGLE_MASK = (1 << CORNER_SHIFT) - 1


def _hash_vertices(bits: U32) -> U32:
    """`[..., 3]` words to `[...]`."""
    h = bits[..., 0] * np.uint32(0x9E3779B1)
    h = ((h ^ h >> np.uint32(15)) + bits[..., 1]) * np.uint32(0x85EBCA77)
    h = ((h ^ h >> np.uint32(13)) + bits[..., 2]) * np.uint32(0xC2B2AE3D)
    return np.asarray(h ^ h >> np.uint32(16))


def _edges(corners: U32) -> tuple[U32, NDArray[np.bool_]]:
    """(key, direction) of every half-edge `[3 n]` of triangles `[n, 3, 3]`."""
    vertex = _hash_vertices(corners)
    start, end = np.roll(vertex, -1, axis=1).reshape(-1), np.roll(vertex, -2, axis=1).reshape(-1)
    k = start + end
    k = (k ^ k >> np.uint32(15)) * np.uint32(0x2C1B3C6D)
    return np.maximum(k ^ k >> np.uint32(12), np.uint32(1)), start > end


def _scaled_area(box: F32, factor: F32) -> F32:
    half = np.float32(0.5)
    side = (box[:, 1] * half - box[:, 0] * half) * factor[:, None]
    x, y, z = side[:, 0], side[:, 1], side[:, 2]
    return np.asarray(x * y + y * z + z * x)


def _waste(a: F32, b: F32) -> I64:
    """The common box's area over the sum of areas, in steps of 1/512 rounded up; NONE beyond
    WORST_RATIO."""
    half = np.float32(0.5)
    both = np.stack([np.minimum(a[:, 0], b[:, 0]), np.maximum(a[:, 1], b[:, 1])], axis=1)
    largest = (both[:, 1] * half - both[:, 0] * half).max(axis=1, initial=0)
    exponent = np.clip(largest.view(np.uint32) >> np.uint32(23), 1, 253).astype(np.uint32)
    factor = ((np.uint32(254) - exponent) << np.uint32(23)).view(np.float32)
    joint = _scaled_area(both, factor)
    total = _scaled_area(a, factor) + _scaled_area(b, factor)
    steps = np.zeros(len(a), np.int64)
    for bit in (512 >> i for i in range(10)):
        less = (steps + (bit - 1)).astype(np.float32) * np.float32(2**-9)
        steps += np.where(joint > total * less, bit, 0)
    bad = ~(total > 0) | (joint > total * np.float32(WORST_RATIO))
    return np.where(bad, NONE, steps)


def find_candidates(
    corners: U32, ids: U32, boxes: F32, usable: NDArray[np.bool_], tile: int
) -> tuple[I64, U32]:
    """(partner, rank), each `[n, 3]`: the half-edge that every half-edge of usable triangles
    could be paired over, among `tile` neighbours, and the order in which candidates are taken
    (NONE, NONE without one)."""
    count = len(corners)
    key, direction = _edges(corners)
    half_edge = np.flatnonzero(np.repeat(usable, 3))
    group = (half_edge // (3 * tile)).astype(np.uint64) << np.uint64(33)
    slot = group | key[half_edge].astype(np.uint64) << np.uint64(1) | direction[half_edge]
    slots, first = np.unique(slot, return_index=True)
    lowest = half_edge[first]
    # Both directions of one edge stand side by side.
    both = np.flatnonzero(slots[1:] == slots[:-1] + np.uint64(1))
    both = both[slots[both] % 2 == 0]
    a, b = lowest[both], lowest[both + 1]
    s, t = a // 3, b // 3
    good = (s != t) & (ids[s, 0] == ids[t, 0])
    for i, j in ((1, 2), (2, 1)):
        good &= (corners[s, (a + i) % 3] == corners[t, (b + j) % 3]).all(axis=1)
    a, b = a[good], b[good]
    steps = _waste(boxes[a // 3], boxes[b // 3])
    a, b, steps = a[steps != NONE], b[steps != NONE], steps[steps != NONE]
    rank_of = steps.astype(np.uint32) << np.uint32(22)
    rank_of |= np.minimum(a, b).astype(np.uint32) * np.uint32(0x9E3779B1) >> np.uint32(10)
    partner = np.full(3 * count, NONE, np.int64)
    rank = np.full(3 * count, NONE, np.uint32)
    partner[a], partner[b] = b, a
    rank[a] = rank[b] = rank_of
    return partner.reshape(-1, 3), rank.reshape(-1, 3)


def match(partner: I64, rank: U32, mates: U32, rounds: int) -> None:
    """Rounds of mutual choices among triangles whose mate is NONE; fills `mates`."""
    for _ in range(rounds):
        there = partner != NONE
        free = there & (mates[:, None] == NONE)
        free &= mates[np.where(there, partner // 3, 0)] == NONE
        ranked = np.where(free, rank, np.uint32(NONE))
        corner = ranked.argmin(axis=1)
        row = np.flatnonzero(ranked.min(axis=1, initial=NONE) != NONE)
        choice = np.full(len(mates), NONE, np.int64)
        choice[row] = 3 * row + corner[row]
        target = partner[row, corner[row]]
        won = choice[target // 3] == target
        row, target = row[won], target[won]
        mates[row] = corner[row].astype(np.uint32) << np.uint32(CORNER_SHIFT) | target // 3


def mark_starts(mates: U32) -> U32:
    """1 for every triangle at whose place a block stands."""
    other = mates & np.uint32(_TRIANGLE_MASK)
    second = (mates < REMOVED) & (other < np.arange(len(mates)))
    return (~second & (mates != REMOVED)).astype(np.uint32)


def pair_near(
    parameters: NDArray[Any],
    triangles: U32,
    triangle_ids: U32,
    triangle_boxes: F32,
    mates: U32,
    starts: U32,
) -> None:
    """Twin of pair_near.wgsl."""
    count = int(parameters["count"][0])
    boxes = triangle_boxes[: 6 * count].reshape(count, 2, 3)
    usable = boxes[:, 0, 0] <= boxes[:, 1, 0]
    mates[:count] = np.where(usable, np.uint32(NONE), np.uint32(REMOVED))
    if parameters["leaf"][0] > 1:
        corners = triangles[: 9 * count].reshape(count, 3, 3)
        ids = triangle_ids[: 2 * count].reshape(count, 2)
        partner, rank = find_candidates(corners, ids, boxes, usable, NEAR_TILE)
        match(partner, rank, mates[:count], ROUNDS)
    starts[:count] = mark_starts(mates[:count])


def make_blocks(
    parameters: NDArray[Any],
    triangle_boxes: F32,
    mates: U32,
    starts: U32,
    block_total: U32,
    blocks: U32,
    boxes: F32,
    state: U32,
) -> None:
    """Twin of make_blocks.wgsl: `starts` is scanned by now, `block_total` its sum."""
    count = int(parameters["count"][0])
    mine = mates[:count]
    every = triangle_boxes[: 6 * count].reshape(count, 2, 3)
    row = np.flatnonzero(mark_starts(mine))
    at = starts[row]
    pair = mine[row] < REMOVED
    lead = row[pair]
    other = mine[lead] & np.uint32(_TRIANGLE_MASK)
    corner_bits = np.uint32(~_TRIANGLE_MASK & 0xFFFFFFFF)
    out = blocks[: 2 * count].reshape(count, 2)
    out[at] = np.stack([row, np.full(len(row), NONE)], axis=1)
    out[at[pair], 0] |= mine[lead] & corner_bits
    out[at[pair], 1] = mine[other] & corner_bits | other
    box = every[row]
    box[pair, 0] = np.minimum(every[lead, 0], every[other, 0])
    box[pair, 1] = np.maximum(every[lead, 1], every[other, 1])
    boxes[: 6 * count].reshape(count, 2, 3)[at] = box
    state[0] = block_total[0]
    removed = mine == REMOVED
    state[1] += np.uint32((~removed).sum())
    for place, reason in ((2, REMOVED_DEGENERATE), (3, REMOVED_NONFINITE)):
        state[place] += np.uint32((removed & (every[:, 1, 0] == -reason)).sum())


TWINS: dict[str, Callable[..., None]] = {
    "triangle_setup": triangle_setup,
    "pair_near": pair_near,
    "make_blocks": make_blocks,
}


class GpuPairing:
    """Blocks of up to `capacity` triangles, one (`leaf` 1) or up to two each.

    After `encode`, `buffers` holds `state` (kept = blocks), `boxes` and `blocks`. LimitError where
    a buffer would not fit."""

    def __init__(self, device: Device, capacity: int, leaf: int = 2) -> None:
        if capacity > MOST_TRIANGLES - 2:
            raise LimitError(f"{capacity:,} triangles, one build takes {MOST_TRIANGLES - 2:,}")
        self.device = device
        self.capacity = capacity
        self.leaf = leaf
        sizes = {
            "triangle_boxes": 24 * capacity,
            "mates": 4 * capacity,
            "starts": 4 * capacity,
            "blocks": 8 * capacity,
            "boxes": 24 * capacity,
            "state": BUILD_STATE.size,
        }
        for name, size in sizes.items():
            device.check_binding(f"pairing/{name}", size)
        self.resources = {
            name: device.buffer(f"pairing/{name}", size) for name, size in sizes.items()
        }
        self.resources["parameters"] = device.buffer(
            "pairing/parameters", PAIR_PARAMETERS.size, "UNIFORM|COPY_DST"
        )
        self._scan = ExclusiveScan(device, capacity, with_total=True)
        self.resources["block_total"] = self._scan.total
        self.stages = {
            name: Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
            for name, twin in TWINS.items()
        }
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """Triangles from now on; at most `capacity`, else ValueError."""
        self._scan.set_count(count)
        self.count = count
        self.device.write(self.resources["parameters"], pair_parameters(count, self.leaf))

    @property
    def buffers(self) -> dict[str, Any]:
        """What the build goes on from."""
        return {name: self.resources[name] for name in ("state", "boxes", "blocks")}

    def phases(self, inputs: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """What pairing of `inputs` (triangles and triangle_ids) encodes, in order."""
        resources = {**self.resources, **inputs}
        groups = max(1, group_count(self.count))

        def pairs(scope: Any) -> None:
            self.stages["pair_near"].dispatch(scope, resources, groups)
            self._scan.encode(scope, self.resources["starts"])
            self.stages["make_blocks"].dispatch(scope, resources, groups)

        return {
            "set-up": lambda scope: self.stages["triangle_setup"].dispatch(
                scope, resources, groups
            ),
            "pairs": pairs,
        }

    def encode(self, scope: Any, inputs: dict[str, Any]) -> None:
        """Within the pass `scope`, from `triangles` (nine float32 each) and `triangle_ids` (see
        `bvh.gpu.pair_records.triangle_ids`)."""
        for encode_phase in self.phases(inputs).values():
            encode_phase(scope)


def pair_parameters(count: int, leaf: int) -> NDArray[Any]:
    """One PAIR_PARAMETERS record."""
    record = np.zeros(1, PAIR_PARAMETERS.dtype)
    record["count"] = count
    record["leaf"] = leaf
    return record


def pair_on_cpu(triangles: F32, ids: U32, leaf: int) -> tuple[NDArray[Any], U32, F32]:
    """(state, blocks `[kept, 2]`, boxes `[kept, 2, 3]`) of `[n, 3, 3]` triangles and their
    `[n, 2]` ids, as GpuPairing leaves them."""
    count = len(triangles)
    flat = np.ascontiguousarray(triangles, np.float32).reshape(-1)
    parameters = pair_parameters(count, leaf)
    state = np.zeros(1, BUILD_STATE.dtype)
    boxes, block_boxes = np.zeros((2, 6 * count), np.float32)
    mates, starts = np.zeros((2, count), np.uint32)
    blocks = np.zeros((count, 2), np.uint32)
    triangle_setup(parameters, flat, boxes, state)
    pair_near(parameters, flat.view(np.uint32), ids.reshape(-1), boxes, mates, starts)
    kept = starts.sum(dtype=np.uint32)
    starts = np.cumsum(starts, dtype=np.uint32) - starts
    make_blocks(
        parameters,
        boxes,
        mates,
        starts,
        np.array([kept]),
        blocks.reshape(-1),
        block_boxes,
        state.view(np.uint32),
    )
    return state, blocks[:kept], block_boxes.reshape(-1, 2, 3)[:kept]
