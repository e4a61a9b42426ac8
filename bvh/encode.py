"""Guest bytes from a neutral picture of a container. The only writer of nodes.

An `Image` is what the bytes say and nothing else: box nodes in depth-first order with the boxes
of their children, which of them are FP16, and the leaf records. `decode` is the inverse.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.fan_blocks import pack_fan_table
from bvh.header import Header, pack_header
from bvh.layout import (
    BOX_BOUNDS_WORD,
    BOX_FP16_CHILD_WORDS,
    BOX_FP32_CHILD_WORDS,
    BOX_FP32_TAIL_WORD,
    BOX_WIDTH,
    EMPTY_BOUND_FP16,
    EMPTY_BOUND_FP32,
    HEADER_BYTES,
    INVALID_POINTER,
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_PROCEDURAL,
    NODE_TRIANGLE_0,
    NODE_TRIANGLE_1,
    ROTATION_NIBBLES,
    TRIANGLE_FLAGS_WORD,
    TRIANGLE_GEOMETRY_WORD,
    TRIANGLE_PRIMITIVE_0_WORD,
    TRIANGLE_PRIMITIVE_1_WORD,
    TRIANGLE_V3_WORD,
    UNIT_BYTES,
    UNIT_WORDS,
    pack_half_bounds,
    pack_pointer,
    round_half_outward,
    unpack_half_bounds,
)
from bvh.pairing import Blocks
from bvh.tree import EMPTY, Tree, child_bounds, depth_first, leaf_slots, tree_levels
from bvh.triangles import TriangleSet, opaque_words

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

# `auto` stores a node as FP16 when rounding its children's boxes outward adds at most this much
# to their summed area: a quarter more visits below it, at worst, against half its bytes. Nodes
# far from the origin or smaller than the spacing of halves there stay FP32.
AUTO_INFLATION = 0.25
# Blocks a chunk: bounds the scratch memory of a large mesh.
_CHUNK = 1 << 17


@dataclass(frozen=True, slots=True)
class Image:
    """Content of a container. Children are inner nodes (>= 0), `~leaf` (< 0) or EMPTY; both
    numberings are depth first. `leaves` are raw records of 16 words (triangle blocks) or 32
    (instance nodes); `leaf_types` are the node types that pointers to them carry."""

    kind: int
    children: I32  # [n, 4]
    boxes: F32  # [n, 4, 2, 3]; what empty slots hold is not looked at
    half: Mask  # [n] stored as FP16
    leaves: U32  # [leaves, 16 or 32]
    leaf_types: NDArray[np.uint8]  # [leaves]
    primitive_count: int
    geometry_count: int
    bounds: F32  # [2, 3]
    base_bytes: int = 0
    fan_ids: U32 | None = None  # [leaves, 4] primitive ids of fans (see bvh.fan_blocks)


def choose_half(boxes: F32, children: I32, nodes: str) -> Mask:
    """[n] which nodes become FP16. The root (node 0) never does, nor does a node that has a
    bound beyond binary16's range; `auto` also refuses nodes that rounding would inflate by more
    than AUTO_INFLATION. Areas are float32, in the order of bvh/gpu/shaders/choose_formats.wgsl,
    so that a build on the GPU chooses the same."""
    count = len(children)
    if nodes == "fp32" or count == 1:
        return np.zeros(count, np.bool_)
    half = np.empty(count, np.bool_)
    for first in range(0, count, _CHUNK):
        part = slice(first, first + _CHUNK)
        used = children[part] != EMPTY
        exact = np.where(used[..., None, None], boxes[part], np.float32(0))
        low, high = round_half_outward(exact[:, :, 0], exact[:, :, 1])
        in_range = ((low & 0x7FFF) < 0x7C00).all(axis=(1, 2))
        in_range &= ((high & 0x7FFF) < 0x7C00).all(axis=(1, 2))
        if nodes == "auto":
            stored = np.stack([low.view(np.float16), high.view(np.float16)], axis=2)
            limit = np.float32(1.0 + AUTO_INFLATION) * _area_sum(exact)
            in_range &= _area_sum(stored.astype(np.float32)) <= limit
        half[part] = in_range
    half[0] = False
    return half


def _area_sum(boxes: F32) -> F32:
    """[n] summed half areas of `[n, 4, 2, 3]` boxes; overflow is for the caller to rule out."""
    with np.errstate(over="ignore", invalid="ignore"):
        side = boxes[:, :, 1] - boxes[:, :, 0]
        x, y, z = side[..., 0], side[..., 1], side[..., 2]
        area = x * y + y * z + z * x
        return np.asarray(area[:, 0] + area[:, 1] + area[:, 2] + area[:, 3])


def make_image(
    tree: Tree,
    primitive_bounds: F32,
    leaves: U32,
    leaf_types: NDArray[np.uint8],
    *,
    kind: int,
    nodes: str,
    primitive_count: int,
    geometry_count: int,
    fan_ids: U32 | None = None,
) -> Image:
    """Puts a four-wide tree into depth-first order and picks node formats. `leaves`, `leaf_types`
    and `fan_ids` are indexed by primitive of the tree and are reordered here."""
    inner_rank, leaf_rank = depth_first(tree.children)
    node_order = np.empty_like(inner_rank)
    node_order[inner_rank] = np.arange(len(inner_rank))
    leaf_order = np.empty_like(leaf_rank)
    leaf_order[leaf_rank] = np.arange(len(leaf_rank))
    old = tree.children[node_order]
    boxes = child_bounds(old, tree.bounds, primitive_bounds)
    children = old.copy()
    children[old >= 0] = inner_rank[old[old >= 0]]
    leaf = leaf_slots(old)
    children[leaf] = ~leaf_rank[~old[leaf]].astype(np.int32)
    return Image(
        kind=kind,
        children=children,
        boxes=boxes,
        half=choose_half(boxes, children, nodes),
        leaves=leaves[leaf_order],
        leaf_types=leaf_types[leaf_order],
        primitive_count=primitive_count,
        geometry_count=geometry_count,
        bounds=tree.bounds[0],
        fan_ids=None if fan_ids is None else fan_ids[leaf_order],
    )


def encode(image: Image) -> tuple[U32, U32]:
    """(words, parents): the container, and for each of its 64-byte units the pointer of the box
    node above the node that starts there (INVALID_POINTER for the root and everywhere else)."""
    sizes = np.where(image.half, NODE_BYTES[NODE_BOX_FP16], NODE_BYTES[NODE_BOX_FP32])
    node_at = HEADER_BYTES + np.cumsum(sizes) - sizes
    leaf_at_bytes = HEADER_BYTES + int(sizes.sum())
    leaf_bytes = 4 * image.leaves.shape[1]
    table_at = leaf_at_bytes + leaf_bytes * len(image.leaves)
    table, fans = np.empty(0, np.uint32), 0
    if image.fan_ids is not None:
        fans = int((image.fan_ids[:, 0] != INVALID_POINTER).sum())
        table = pack_fan_table(image.fan_ids) if fans else table
    total = table_at + 4 * len(table)
    leaf_at = leaf_at_bytes + leaf_bytes * np.arange(len(image.leaves), dtype=np.int64)

    node_pointer = pack_pointer(node_at, np.where(image.half, NODE_BOX_FP16, NODE_BOX_FP32))
    leaf_pointer = pack_pointer(leaf_at, image.leaf_types)
    inner = image.children >= 0
    leaf = leaf_slots(image.children)
    pointers = np.full(image.children.shape, INVALID_POINTER, np.uint32)
    pointers[inner] = node_pointer[image.children[inner]]
    pointers[leaf] = leaf_pointer[~image.children[leaf]]

    words = np.zeros(total // 4, np.uint32)
    units = words.reshape(-1, UNIT_WORDS)
    for half in (False, True):
        rows = np.flatnonzero(image.half == half)
        for first in range(0, len(rows), _CHUNK):
            part = rows[first : first + _CHUNK]
            pack = _pack_fp16 if half else _pack_fp32
            records = pack(pointers[part], image.boxes[part])
            unit = node_at[part] // UNIT_BYTES
            for i in range(records.shape[1] // UNIT_WORDS):
                units[unit + i] = records[:, i * UNIT_WORDS : (i + 1) * UNIT_WORDS]
    words[leaf_at_bytes // 4 : table_at // 4] = image.leaves.reshape(-1)
    words[table_at // 4 :] = table

    parents = np.full(total // UNIT_BYTES, INVALID_POINTER, np.uint32)
    above = np.broadcast_to(node_pointer[:, None], image.children.shape)
    parents[node_at[image.children[inner]] // UNIT_BYTES] = above[inner]
    parents[leaf_at[~image.children[leaf]] // UNIT_BYTES] = above[leaf]

    words[: HEADER_BYTES // 4] = pack_header(
        Header(
            kind=image.kind,
            size_units=total // UNIT_BYTES,
            leaf_unit=leaf_at_bytes // UNIT_BYTES,
            nodes_fp32=int((~image.half).sum()),
            nodes_fp16=int(image.half.sum()),
            leaf_count=len(image.leaves),
            primitive_count=image.primitive_count,
            geometry_count=image.geometry_count,
            depth=len(tree_levels(image.children)),
            bounds=image.bounds,
            base_bytes=image.base_bytes,
            fan_unit=table_at // UNIT_BYTES if fans else 0,
            fan_count=fans,
            sphere_count=int((image.leaf_types == NODE_PROCEDURAL).sum()),
        )
    )
    return words, parents


def _pack_fp32(pointers: U32, boxes: F32) -> U32:
    record = np.zeros((len(pointers), BOX_FP32_TAIL_WORD + 4), np.uint32)
    record[:, :BOX_WIDTH] = pointers
    flat = boxes.reshape(-1, BOX_WIDTH, BOX_FP32_CHILD_WORDS).view(np.uint32).copy()
    flat[pointers == INVALID_POINTER] = EMPTY_BOUND_FP32
    record[:, BOX_BOUNDS_WORD:BOX_FP32_TAIL_WORD] = flat.reshape(len(pointers), -1)
    return record


def _pack_fp16(pointers: U32, boxes: F32) -> U32:
    empty = pointers == INVALID_POINTER
    finite = np.where(empty[..., None, None], np.float32(0), boxes)
    halves = pack_half_bounds(finite[:, :, 0], finite[:, :, 1])
    halves[empty] = EMPTY_BOUND_FP16
    record = np.empty((len(pointers), BOX_BOUNDS_WORD + 4 * BOX_FP16_CHILD_WORDS), np.uint32)
    record[:, :BOX_WIDTH] = pointers
    record[:, BOX_BOUNDS_WORD:] = halves.reshape(len(pointers), -1)
    return record


def stored_boxes(image: Image) -> F32:
    """[n, 4, 2, 3] the boxes a traversal sees: FP16 nodes rounded outward."""
    boxes = image.boxes.copy()
    for first in range(0, len(boxes), _CHUNK):
        part = slice(first, first + _CHUNK)
        rows = image.half[part, None] & (image.children[part] != EMPTY)
        exact = boxes[part][rows]
        low, high = unpack_half_bounds(pack_half_bounds(exact[:, 0], exact[:, 1]))
        boxes[part][rows] = np.stack([low, high], axis=1)
    return boxes


def pack_blocks(
    blocks: Blocks, triangles: TriangleSet, opaque: Mask
) -> tuple[U32, NDArray[np.uint8]]:
    """([n, 16] triangle blocks, [n] node types) in the order of `blocks`. `opaque` is per
    geometry."""
    count = len(blocks.first)
    words = np.zeros((count, UNIT_WORDS), np.uint32)
    bits = np.ascontiguousarray(triangles.positions).view(np.uint32)
    nibble = np.array(ROTATION_NIBBLES, np.uint32)
    for start in range(0, count, _CHUNK):
        part = slice(start, start + _CHUNK)
        out = words[part]
        first, corner = blocks.first[part], blocks.first_corner[part]
        for slot in range(3):
            out[:, 3 * slot : 3 * slot + 3] = bits[first, (corner + slot) % 3]
        out[:, TRIANGLE_V3_WORD : TRIANGLE_V3_WORD + 3] = out[:, 6:9]
        out[:, TRIANGLE_GEOMETRY_WORD] = opaque_words(triangles.geometry[first], opaque)
        out[:, TRIANGLE_PRIMITIVE_0_WORD] = triangles.primitive[first]
        out[:, TRIANGLE_PRIMITIVE_1_WORD] = INVALID_POINTER
        # Corner k in slot 0 puts original vertex 0 in slot -k mod 3.
        out[:, TRIANGLE_FLAGS_WORD] = nibble[(3 - corner) % 3]
        pair = np.flatnonzero(blocks.second[part] >= 0)
        second = blocks.second[part][pair]
        corner = blocks.second_corner[part][pair]
        out[pair, TRIANGLE_V3_WORD : TRIANGLE_V3_WORD + 3] = bits[second, corner]
        out[pair, TRIANGLE_PRIMITIVE_1_WORD] = triangles.primitive[second]
        # Type 1 is V1, V3, V2: corner k in slot 1 puts original vertex 0 in slot 1 - k mod 3.
        out[pair, TRIANGLE_FLAGS_WORD] |= nibble[(4 - corner) % 3] << np.uint32(8)
    types = np.where(blocks.second >= 0, NODE_TRIANGLE_1, NODE_TRIANGLE_0).astype(np.uint8)
    return words, types
