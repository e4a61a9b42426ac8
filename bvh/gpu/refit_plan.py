"""What a refit needs to know of a built BLAS, made once on the host from its bytes.

A container's blocks lie in depth-first order, so that what is below a child is a run of blocks. The
plan lists the boxes to write, as they lie in memory, and the run of each. No order among nodes is
needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.decode import decode, decode_triangles
from bvh.gpu.refit_records import HALF_BOX, HEADER_BOUNDS_WORD, NO_VERTEX
from bvh.header import KIND_BLAS, unpack_header
from bvh.layout import (
    BOX_BOUNDS_WORD,
    BOX_FP16_CHILD_WORDS,
    BOX_FP32_CHILD_WORDS,
    BOX_WIDTH,
    FLAG_I_MASK,
    FLAG_J_SHIFT,
    HEADER_BYTES,
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_TRIANGLE_0,
    TRIANGLE_FLAGS_WORD,
    TRIANGLE_SLOTS,
)
from bvh.tree import leaf_slots, tree_levels
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RefitPlan:
    """`slots[i]` is a box to write: its first word within the container (with HALF_BOX where an
    FP16 node holds it), the first and the last block below. The first is the root's, in the
    header; then every child slot in use is there once, by length of run. `block_vertices` are
    this module's."""

    leaf_unit: int
    block_vertices: U32  # [blocks, 5]
    slots: U32  # [blocks + nodes, 3]; none without a block

    @property
    def blocks(self) -> int:
        return len(self.block_vertices)

    @property
    def nodes(self) -> int:
        return max(len(self.slots) - self.blocks, 1)


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


def slot_runs(children: NDArray[np.int32]) -> tuple[I64, I64]:
    """([nodes, 4], [nodes, 4]) first and last leaf below every slot of `children` (leaf k is ~k),
    last -1 for an empty one. ValueError where the leaves of a slot are no run: not in depth-first
    order."""
    first = np.full(children.shape, np.iinfo(np.int64).max)
    last = np.full(children.shape, -1, np.int64)
    leaves = leaf_slots(children).astype(np.int64)
    leaf = leaves > 0
    first[leaf] = last[leaf] = ~children[leaf]
    for level in reversed(tree_levels(children)):
        rows, slots = np.nonzero(children[level] >= 0)
        at = (level[rows], slots)
        below = children[at]
        first[at] = first[below].min(axis=1)
        last[at] = last[below].max(axis=1)
        leaves[at] = leaves[below].sum(axis=1)
    if (last - first + 1 != leaves)[leaves > 0].any():
        raise ValueError("the container's leaves do not lie in depth-first order")
    return first, last


def make_plan(words: U32, vertices: U32) -> RefitPlan:
    """The plan of one BLAS container (`words` starts at its header); `vertices` are the
    `block_vertices` of its leaves. ValueError for a TLAS, for another number of blocks, or for
    leaves in another order than depth first."""
    header = unpack_header(words)
    if header.kind != KIND_BLAS:
        raise ValueError("a TLAS is built anew, not refitted")
    image = decode(words)
    if vertices.shape != (header.leaf_count, 5):
        raise ValueError(f"vertices of shape {vertices.shape} for {header.leaf_count} blocks")
    sizes = np.where(image.half, NODE_BYTES[NODE_BOX_FP16], NODE_BYTES[NODE_BOX_FP32])
    starts = (HEADER_BYTES + np.cumsum(sizes) - sizes) // 4
    step = np.where(image.half, BOX_FP16_CHILD_WORDS, BOX_FP32_CHILD_WORDS)
    places = (starts + BOX_BOUNDS_WORD)[:, None] + step[:, None] * np.arange(BOX_WIDTH)
    places |= np.where(image.half, HALF_BOX, 0)[:, None]
    first, last = slot_runs(image.children)
    used = last >= 0
    slots = np.stack([places[used], first[used], last[used]], axis=-1)
    root = [[HEADER_BOUNDS_WORD, 0, header.leaf_count - 1]] if header.leaf_count else slots[:0]
    return RefitPlan(
        leaf_unit=header.leaf_unit,
        block_vertices=np.ascontiguousarray(vertices, np.uint32),
        slots=np.concatenate([root, slots]).astype(np.uint32),
    )
