"""Stages of a batch of small BLASes that its meshes need between those shared with others.

All meshes' triangles stand in one row and are paired there at once (`bvh.gpu.pairing`; geometries
are numbered through the batch, so that no pair joins two meshes). A mesh's blocks are then a run
of the blocks, found in the scan that placed them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.encode import pack_blocks
from bvh.gpu.build_records import GROUP_SIZE, group_count
from bvh.gpu.cluster_records import HALF
from bvh.gpu.pair_records import host_blocks
from bvh.layout import (
    GEOMETRY_INDEX_MASK,
    GEOMETRY_OPAQUE,
    HEADER_BYTES,
    INVALID_POINTER,
    TRIANGLE_GEOMETRY_WORD,
    TRIANGLE_PRIMITIVE_1_WORD,
    UNIT_BYTES,
    UNIT_WORDS,
)
from bvh.triangles import TriangleSet

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
Records = NDArray[Any]


def small_leaves(
    state: Records, blocks: U32, triangles: U32, triangle_ids: U32, leaves: U32
) -> None:
    """Twin of small_leaves.wgsl: 16 words a block."""
    kept = int(state["kept"][0])
    corners = triangles[: 9 * (len(triangles) // 9)].view(np.float32).reshape(-1, 3, 3)
    ids = triangle_ids[: 2 * len(corners)].reshape(-1, 2)
    every = TriangleSet(corners, np.zeros(len(corners), np.uint32), ids[:, 1], 0, 0)
    mine = host_blocks(blocks[: 2 * kept].reshape(kept, 2))
    words, _ = pack_blocks(mine, every, np.zeros(1, np.bool_))
    words[:, TRIANGLE_GEOMETRY_WORD] = ids[mine.first, 0]
    words[:, TRIANGLE_GEOMETRY_WORD] &= np.uint32(GEOMETRY_INDEX_MASK | GEOMETRY_OPAQUE)
    leaves[: UNIT_WORDS * kept] = words.reshape(-1)


def small_segments(
    parameters: Records,
    meshes: Records,
    starts: U32,
    state: Records,
    leaves: U32,
    segments: Records,
    trees: Records,
) -> None:
    """Twin of small_segments.wgsl."""
    number, triangles = int(parameters["meshes"][0]), int(parameters["triangles"][0])
    kept = int(state["kept"][0])
    before = np.append(starts[:triangles], np.uint32(kept)).astype(np.int64)
    mine = meshes[:number]
    first = before[mine["first"]]
    count = before[mine["first"] + mine["count"]] - first
    words = leaves[: UNIT_WORDS * kept].reshape(kept, UNIT_WORDS)
    pairs = np.append(0, np.cumsum(words[:, TRIANGLE_PRIMITIVE_1_WORD] != INVALID_POINTER))
    segments["first"][:number], segments["count"][:number] = first, count
    trees["primitives"][:number] = count + pairs[first + count] - pairs[first]
    trees["geometries"][:number] = mine["geometries"]
    trees["first_geometry"][:number] = mine["first_geometry"]
    trees["limit_unit"][:number] = parameters["limit_unit"]


def small_sizes(
    parameters: Records, segments: Records, nodes: Records, sizes: U32, size_sums: U32
) -> None:
    """Twin of small_sizes.wgsl."""
    number = int(parameters["meshes"][0])
    root = nodes[segments["root"][:number]]
    size = HEADER_BYTES // UNIT_BYTES + root["units"][:, 0] + root["leaves"]
    size += (root["shares"] & HALF) != 0
    sizes[:number] = (size + 3) & ~np.uint32(3)
    starts = np.arange(0, number, GROUP_SIZE)
    size_sums[: len(starts)] = np.add.reduceat(sizes[:number], starts) if number else 0


def small_places(
    parameters: Records,
    segments: Records,
    nodes: Records,
    sizes: U32,
    size_sums: U32,
    trees: Records,
    blases: Records,
    total_units: U32,
) -> None:
    """Twin of small_places.wgsl."""
    number = int(parameters["meshes"][0])
    root = nodes[segments["root"][:number]]
    base = parameters["base_unit"] + np.cumsum(sizes[:number], dtype=np.uint32) - sizes[:number]
    total_units[0] = size_sums[: group_count(number)].sum()
    trees["base_unit"][:number] = base
    used = (root["leaves"] > 0)[:, None]
    out = blases[:number]
    out["low"] = np.where(used, root["low"], np.float32(1))
    out["high"] = np.where(used, root["high"], np.float32(-1))
    out["base_unit"], out["geometry_count"] = base, trees["geometries"][:number]


TWINS: dict[str, Callable[..., None]] = {
    "small_leaves": small_leaves,
    "small_segments": small_segments,
    "small_sizes": small_sizes,
    "small_places": small_places,
}
