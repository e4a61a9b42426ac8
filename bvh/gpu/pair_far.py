"""Pairs of any two triangles, for those that found no partner in their tile.

A table in a buffer keeps the lowest half-edge for each hash of an edge and direction. Two edges
with one hash displace each other: the pass that follows hashes differently and finds most of what
was lost, among fewer triangles. So the table needs no room for more than a part of the edges, no
search for a free slot, and says the same whatever comes first.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.pair_edges import choose, edge_keys, mark_starts, rank_candidates, settle
from bvh.gpu.pair_records import NONE

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

PASSES = 2
ROUNDS = 2  # of choices a pass


def table_slots(capacity: int) -> int:
    """Slots, each of two directions, for so many triangles: a power of two."""
    return 1 << max(8, (2 * capacity - 1).bit_length())


def _open_edges(parameters: NDArray[Any], triangles: U32, mates: U32) -> tuple[I64, U32]:
    """(half-edges, their places in the table) of triangles without a mate."""
    count = int(parameters["count"][0])
    key, direction = edge_keys(triangles[: 9 * count].reshape(count, 3, 3))
    half_edge = np.flatnonzero(np.repeat(mates[:count] == NONE, 3))
    k = (key[half_edge] ^ parameters["seed"][0]) * np.uint32(0x9E3779B1)
    slot = (k ^ k >> np.uint32(15)) & parameters["table_mask"][0]
    return half_edge, slot << np.uint32(1) | direction[half_edge]


def clear_edges(parameters: NDArray[Any], edge_table: U32) -> None:
    """Twin of clear_edges.wgsl."""
    edge_table[: 2 * int(parameters["table_mask"][0]) + 2] = NONE


def insert_edges(
    parameters: NDArray[Any], triangles: U32, mates: U32, edge_table: U32, choices: U32
) -> None:
    """Twin of insert_edges.wgsl: the lowest half-edge at every place; `choices` say who has none
    to make."""
    half_edge, place = _open_edges(parameters, triangles, mates)
    np.minimum.at(edge_table, place, half_edge.astype(np.uint32))
    count = int(parameters["count"][0])
    without = mates[:count] != NONE
    choices[: 2 * count] = np.repeat(np.where(without, np.uint32(NONE), np.uint32(0)), 2)


def choose_far(
    parameters: NDArray[Any],
    triangles: U32,
    triangle_ids: U32,
    triangle_boxes: F32,
    mates: U32,
    edge_table: U32,
    choices: U32,
) -> None:
    """Twin of choose_far.wgsl: own and target half-edge of every triangle. Who found none in an
    earlier round of the pass finds none now."""
    count = int(parameters["count"][0])
    half_edge, place = _open_edges(parameters, triangles, mates)
    other = edge_table[place ^ np.uint32(1)].astype(np.int64)
    both = (edge_table[place] == half_edge) & (other != NONE) & (half_edge < other)
    partner, rank = rank_candidates(
        half_edge[both],
        other[both],
        triangles[: 9 * count].reshape(count, 3, 3),
        triangle_ids[: 2 * count].reshape(count, 2),
        triangle_boxes[: 6 * count].reshape(count, 2, 3),
    )
    choices[: 2 * count].reshape(count, 2)[:] = np.stack(
        choose(partner, rank, mates[:count]), axis=1
    )


def settle_far(parameters: NDArray[Any], choices: U32, mates: U32, starts: U32) -> None:
    """Twin of settle_far.wgsl: mutual choices become mates."""
    count = int(parameters["count"][0])
    own, target = choices[: 2 * count].reshape(count, 2).T
    settle(own, target, mates[:count])
    starts[:count] = mark_starts(mates[:count])
