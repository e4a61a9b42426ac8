"""Guest bytes back to an `Image`, for tools and for the test that encode and decode agree.

Expects a container that `validate` accepts; anything else is a ValueError naming the byte.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.encode import Image
from bvh.fan_blocks import unpack_fan_table
from bvh.header import KIND_TLAS, Header, unpack_header
from bvh.layout import (
    BOX_BOUNDS_WORD,
    BOX_FP16_CHILD_WORDS,
    BOX_FP32_TAIL_WORD,
    BOX_WIDTH,
    FLAG_I_MASK,
    FLAG_J_SHIFT,
    GEOMETRY_INDEX_MASK,
    GEOMETRY_OPAQUE,
    HEADER_BYTES,
    INVALID_POINTER,
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_INSTANCE,
    NODE_PROCEDURAL,
    NODE_TRIANGLE_2,
    TRIANGLE_FLAGS_WORD,
    TRIANGLE_GEOMETRY_WORD,
    TRIANGLE_PRIMITIVE_0_WORD,
    TRIANGLE_SLOTS,
    UNIT_BYTES,
    UNIT_WORDS,
    unpack_fan_geometry,
    unpack_half_bounds,
    unpack_pointer,
)
from bvh.tree import EMPTY

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TriangleRows:
    """One row for each triangle that blocks hold, in block order, by type."""

    block: I64  # [m] index of its block
    slot_positions: F32  # [m, 3, 3] in block slot order: the winding the instruction tests
    positions: F32  # [m, 3, 3] in the original vertex order, rotation undone
    geometry: U32  # [m]
    opaque: NDArray[np.bool_]  # [m]
    primitive: U32  # [m]


def node_boxes(units: U32, at: I64, half: NDArray[np.bool_]) -> tuple[U32, F32]:
    """(pointers [k, 4], boxes [k, 4, 2, 3] float32) of the box nodes at units `at` of
    `units [n, 16]`; `half` says which are FP16."""
    pointers = units[at, :BOX_WIDTH]
    boxes = np.empty((len(at), BOX_WIDTH, 2, 3), np.float32)
    narrow = np.flatnonzero(half)
    packed = units[at[narrow], BOX_BOUNDS_WORD:].reshape(-1, BOX_WIDTH, BOX_FP16_CHILD_WORDS)
    boxes[narrow, :, 0], boxes[narrow, :, 1] = unpack_half_bounds(packed)
    wide = np.flatnonzero(~half)
    both = np.concatenate([units[at[wide]], units[at[wide] + 1]], axis=1)
    boxes[wide] = (
        both[:, BOX_BOUNDS_WORD:BOX_FP32_TAIL_WORD].view(np.float32).reshape(-1, BOX_WIDTH, 2, 3)
    )
    return pointers, boxes


def container_nodes(words: U32) -> tuple[I64, NDArray[np.bool_]]:
    """(units, half) of the inner nodes of one container, in memory order. Formats are known from
    the pointers alone, so this walks the levels from the root."""
    header = unpack_header(words)
    units = words.reshape(-1, UNIT_WORDS)
    found = [np.array([HEADER_BYTES // UNIT_BYTES], np.int64)]
    halves = [np.zeros(1, np.bool_)]
    total = 1
    while len(found[-1]):
        at, half = found[-1], halves[-1]
        pointers = units[at, :BOX_WIDTH].reshape(-1)
        offset, kind = unpack_pointer(pointers[pointers != INVALID_POINTER])
        box = (kind == NODE_BOX_FP16) | (kind == NODE_BOX_FP32)
        below = offset[box] // UNIT_BYTES
        if len(below) and int(below.max()) >= header.leaf_unit:
            raise ValueError(f"box node pointer to byte {64 * int(below.max())}, beyond the nodes")
        total += len(below)
        if total > header.nodes_fp16 + header.nodes_fp32:
            raise ValueError("more box nodes can be reached than the header counts")
        found.append(below)
        halves.append(kind[box] == NODE_BOX_FP16)
    at, half = np.concatenate(found), np.concatenate(halves)
    order = np.argsort(at, kind="stable")
    return at[order], half[order]


def decode(words: U32) -> Image:
    """The image of one container (`words` starts at its header; anything behind it is ignored)."""
    header = unpack_header(words)
    words = words[: header.size_units * UNIT_WORDS]
    units = words.reshape(-1, UNIT_WORDS)
    at, half = container_nodes(words)
    pointers, boxes = node_boxes(units, at, half)
    offset, kind = unpack_pointer(pointers)
    used = pointers != INVALID_POINTER
    box = used & ((kind == NODE_BOX_FP16) | (kind == NODE_BOX_FP32))
    leaf = used & ~box
    leaf_type = NODE_INSTANCE if header.kind == KIND_TLAS else 0
    leaf_units = NODE_BYTES[leaf_type] // UNIT_BYTES
    children = np.full(pointers.shape, EMPTY, np.int32)
    children[box] = np.searchsorted(at, offset[box] // UNIT_BYTES)
    index = (offset[leaf] // UNIT_BYTES - header.leaf_unit) // leaf_units
    if len(index) and not 0 <= int(index.min()) <= int(index.max()) < header.leaf_count:
        raise ValueError(f"leaf pointer outside the {header.leaf_count} leaves")
    children[leaf] = ~index.astype(np.int32)
    leaf_types = np.zeros(header.leaf_count, np.uint8)
    leaf_types[index] = kind[leaf]
    return Image(
        kind=header.kind,
        children=children,
        boxes=boxes,
        half=half,
        leaves=leaf_records(units, header),
        leaf_types=leaf_types,
        primitive_count=header.primitive_count,
        geometry_count=header.geometry_count,
        bounds=header.bounds,
        base_bytes=header.base_bytes,
        fan_ids=unpack_fan_table(words, header),
    )


def leaf_records(units: U32, header: Header) -> U32:
    """[leaves, 16 or 32] the leaf records of a container's `units [n, 16]`."""
    leaf_units = NODE_BYTES[NODE_INSTANCE if header.kind == KIND_TLAS else 0] // UNIT_BYTES
    end = header.leaf_unit + leaf_units * header.leaf_count
    return units[header.leaf_unit : end].reshape(-1, leaf_units * UNIT_WORDS)


def decode_triangles(
    blocks: U32, types: NDArray[np.uint8], fan_ids: U32 | None = None
) -> TriangleRows:
    """Triangles of blocks `[n, 16]` whose pointers carry `types[n]` (0 to 3; spheres, of type 7,
    have none); `fan_ids [n, 4]` are the primitive ids of those of type 2 and 3, which are missing
    (INVALID_POINTER) without it."""
    counts = np.where(types == NODE_PROCEDURAL, 0, types.astype(np.int64) + 1)
    block = np.repeat(np.arange(len(blocks)), counts)
    which = np.arange(len(block)) - np.repeat(np.cumsum(counts) - counts, counts)
    fan = types[block] >= NODE_TRIANGLE_2
    vertices = np.ascontiguousarray(blocks[:, :15]).view(np.float32).reshape(-1, 5, 3)
    slots = np.array(TRIANGLE_SLOTS)
    held = vertices[block[:, None], slots[which]]
    flags = blocks[block, TRIANGLE_FLAGS_WORD].astype(np.int64) >> (8 * which)
    i, j = flags & FLAG_I_MASK, (flags >> FLAG_J_SHIFT) & FLAG_I_MASK
    source = np.stack([3 - i - j, i, j], axis=1)
    rows = np.arange(len(block))[:, None]
    geometry = blocks[block, TRIANGLE_GEOMETRY_WORD]
    primitive = blocks[block, TRIANGLE_PRIMITIVE_0_WORD + np.minimum(which, 1)]
    if fan.any():
        fan_geometry = unpack_fan_geometry(blocks[block[fan], TRIANGLE_FLAGS_WORD])
        geometry[fan] = fan_geometry
        primitive[fan] = INVALID_POINTER if fan_ids is None else fan_ids[block[fan], which[fan]]
    return TriangleRows(
        block=block,
        slot_positions=held,
        positions=held[rows, np.clip(source, 0, 2)],
        geometry=geometry & np.uint32(GEOMETRY_INDEX_MASK),
        opaque=(geometry & np.uint32(GEOMETRY_OPAQUE)) != 0,
        primitive=primitive,
    )
