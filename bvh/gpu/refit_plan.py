"""What a refit needs to know of a built BLAS, made once on the host from its bytes.

Nodes are listed by height (levels above the leaves) rather than by depth: a node's children are
always lower, heights shrink geometrically from the first one on, and the many thin levels of a
deep tree all end up in the last dispatch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.decode import decode, decode_triangles
from bvh.gpu.refit_records import HALF_NODE, NO_CHILD, NO_VERTEX, TOP_NODES
from bvh.header import KIND_BLAS, unpack_header
from bvh.layout import (
    FLAG_I_MASK,
    FLAG_J_SHIFT,
    HEADER_BYTES,
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_TRIANGLE_0,
    TRIANGLE_FLAGS_WORD,
    TRIANGLE_SLOTS,
    UNIT_BYTES,
)
from bvh.tree import leaf_slots, tree_levels
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RefitPlan:
    """The order of a refit. `node_units[i]` is node i's 64-byte unit within the container, with
    HALF_NODE set for an FP16 node; `node_children[i]` are boxes: a block's number, `blocks` plus a
    node's number, or NO_CHILD. Nodes stand by height, the root last; those of height h are
    `height_starts[h] : height_starts[h + 1]`. `block_vertices` are this module's."""

    leaf_unit: int
    size_units: int
    block_vertices: U32  # [blocks, 5]
    node_units: U32  # [nodes]
    node_children: U32  # [nodes, 4]
    height_starts: U32  # [heights + 1]

    @property
    def blocks(self) -> int:
        return len(self.block_vertices)

    @property
    def nodes(self) -> int:
        return len(self.node_units)

    @property
    def heights(self) -> int:
        return len(self.height_starts) - 1

    @property
    def top_height(self) -> int:
        """First height of the last dispatch: from there on at most TOP_NODES nodes are left."""
        left = self.nodes - self.height_starts.astype(np.int64)[:-1]
        return int(np.flatnonzero(left <= TOP_NODES)[0])


def block_vertices(words: U32, triangles: Sequence[U32], alike: U32 | None = None) -> U32:
    """[blocks, 5] vertex of each block's corners V0..V4, from a BLAS container and the vertex
    indices `[m, 3]` of the triangles of each geometry (rows are the primitives that the blocks
    name). V3 repeats V2 and V4 is NO_VERTEX where the block has no such corner.

    Blocks are made of corners at equal positions. Where triangles of a block name different
    vertices there, the vertices must move together: `alike[v]` gives vertices that do one number
    (without it, only a vertex and itself do). UserError names the first block that breaks this."""
    image = decode(words)
    rows = decode_triangles(image.leaves, image.leaf_types, image.fan_ids)
    counts = np.array([len(part) for part in triangles], np.int64)
    starts = np.cumsum(counts) - counts
    flat = np.concatenate([np.asarray(part, np.uint32).reshape(-1, 3) for part in triangles])
    named = rows.primitive.astype(np.int64)
    if (rows.geometry >= len(counts)).any() or (named >= counts[rows.geometry]).any():
        raise ValueError("the container names triangles that were not given")
    corners = flat[starts[rows.geometry] + named]  # original order
    kinds = image.leaf_types.astype(np.int64) + 1
    which = np.arange(len(rows.block)) - np.repeat(np.cumsum(kinds) - kinds, kinds)
    flags = image.leaves[rows.block, TRIANGLE_FLAGS_WORD].astype(np.int64) >> (8 * which)
    i, j = flags & FLAG_I_MASK, (flags >> FLAG_J_SHIFT) & FLAG_I_MASK
    source = np.stack([3 - i - j, i, j], axis=1)

    vertices = np.full((len(image.leaves), 5), NO_VERTEX, np.uint32)
    for k, slots in enumerate(TRIANGLE_SLOTS):
        row = np.flatnonzero(which == k)
        block = rows.block[row][:, None]
        slot = np.array(slots)[source[row]]
        held, given = vertices[block, slot], corners[row]
        apart = held != given if alike is None else alike[held % len(alike)] != alike[given]
        apart &= held != NO_VERTEX
        if apart.any():
            at = int(block[apart.any(axis=1)][0, 0])
            raise UserError(
                f"block {at} holds triangles whose shared edge has two vertices at one position "
                "that need not move together: build what deforms with one triangle a block (leaf 1)"
            )
        vertices[block, slot] = np.where(held == NO_VERTEX, given, held)
    single = image.leaf_types == NODE_TRIANGLE_0
    vertices[single, 3] = vertices[single, 2]
    return vertices


def make_plan(words: U32, vertices: U32) -> RefitPlan:
    """The plan of one BLAS container (`words` starts at its header); `vertices` are the
    `block_vertices` of its leaves. ValueError for a TLAS, or for another number of blocks."""
    header = unpack_header(words)
    if header.kind != KIND_BLAS:
        raise ValueError("a TLAS is built anew, not refitted")
    image = decode(words)
    if vertices.shape != (header.leaf_count, 5):
        raise ValueError(f"vertices of shape {vertices.shape} for {header.leaf_count} blocks")
    height = np.zeros(len(image.children), np.int64)
    for level in reversed(tree_levels(image.children)):
        slots = image.children[level]
        below = np.where(slots >= 0, height[np.maximum(slots, 0)] + 1, 0)
        height[level] = below.max(axis=1)
    order = np.argsort(height, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    sizes = np.where(image.half, NODE_BYTES[NODE_BOX_FP16], NODE_BYTES[NODE_BOX_FP32])
    units = (HEADER_BYTES + np.cumsum(sizes) - sizes) // UNIT_BYTES
    slots = image.children[order]
    children = np.full(slots.shape, NO_CHILD, np.uint32)
    inner, leaf = slots >= 0, leaf_slots(slots)
    children[inner] = len(vertices) + place[slots[inner]]
    children[leaf] = ~slots[leaf]
    return RefitPlan(
        leaf_unit=header.leaf_unit,
        size_units=header.size_units,
        block_vertices=np.ascontiguousarray(vertices, np.uint32),
        node_units=(units | np.where(image.half, HALF_NODE, 0))[order].astype(np.uint32),
        node_children=children,
        height_starts=np.searchsorted(height[order], np.arange(height.max() + 2)).astype(np.uint32),
    )
