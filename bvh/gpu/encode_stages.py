"""Twins of the encoder's stages (see `bvh.gpu.encode`): NumPy over the same buffers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.encode import choose_half
from bvh.fan_blocks import fan_table_units
from bvh.gpu.encode_records import FORMATS
from bvh.gpu.pair_records import CORNER_SHIFT, NONE, TRIANGLE_MASK
from bvh.header import KIND_BLAS, Header, pack_header
from bvh.layout import (
    BOX_BOUNDS_WORD,
    BOX_FP32_TAIL_WORD,
    EMPTY_BOUND_FP16,
    EMPTY_BOUND_FP32,
    HEADER_BYTES,
    INVALID_POINTER,
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    ROTATION_NIBBLES,
    UNIT_BYTES,
    UNIT_WORDS,
    pack_half_bounds,
)
from bvh.tree import EMPTY, child_bounds

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
U32 = NDArray[np.uint32]

HEADER_UNITS = HEADER_BYTES // UNIT_BYTES


def _children(count: int, wide_children: I32) -> I32:
    return wide_children[: 4 * count].reshape(count, 4)


def _child_boxes(children: I32, places: U32, bounds: F32, boxes: F32) -> F32:
    """[n, 4, 2, 3] of every slot; empty slots are inverted."""
    every = bounds[: 6 * (len(bounds) // 6)].reshape(-1, 2, 3)
    own = boxes[: 6 * (len(boxes) // 6)].reshape(-1, 2, 3)
    return child_bounds(children, every[places[: len(children)]], own)


def choose_formats(
    parameters: NDArray[Any],
    wide_summary: U32,
    wide_children: I32,
    places: U32,
    bounds: F32,
    boxes: F32,
    node_units: U32,
    node_count: U32,
) -> None:
    """Twin of choose_formats.wgsl: `node_units`, 1 or 2 a wide node, and how many there are."""
    count = int(wide_summary[0])
    node_count[0] = count
    children = _children(count, wide_children)
    child_boxes = _child_boxes(children, places, bounds, boxes)
    half = choose_half(child_boxes, children, FORMATS[int(parameters["node_format"][0])])
    node_units[:count] = np.where(half, 1, 2)


def write_header(
    parameters: NDArray[Any],
    state: NDArray[Any],
    wide_summary: U32,
    unit_total: U32,
    fan_total: U32,
    bounds: U32,
    words: U32,
    encode_summary: NDArray[Any],
) -> None:
    """Twin of write_header.wgsl."""
    kept, nodes = int(state["kept"][0]), int(wide_summary[0])
    leaf_unit = HEADER_UNITS + int(unit_total[0])
    nodes_fp16 = 2 * nodes - int(unit_total[0])
    fans = int(fan_total[0])
    units = leaf_unit + kept + fan_table_units(kept, fans)
    fits = units <= int(parameters["capacity_units"][0])
    fields = (units, int(fits), leaf_unit, nodes, nodes_fp16, kept, int(wide_summary[1]), fans)
    encode_summary[0] = fields
    if not fits:
        return
    empty = np.array([[np.inf] * 3, [-np.inf] * 3], np.float32)
    base = int(parameters["base_unit"][0])
    header = Header(
        kind=KIND_BLAS,
        size_units=units,
        leaf_unit=leaf_unit,
        nodes_fp32=nodes - nodes_fp16,
        nodes_fp16=nodes_fp16,
        leaf_count=kept,
        primitive_count=int(state["triangles"][0]),
        geometry_count=int(parameters["geometry_count"][0]),
        depth=int(wide_summary[1]),
        bounds=bounds[:6].view(np.float32).reshape(2, 3) if kept else empty,
        base_bytes=base * UNIT_BYTES,
        fan_unit=leaf_unit + kept if fans else 0,
        fan_count=fans,
    )
    at = base * UNIT_WORDS
    words[at : at + HEADER_BYTES // 4] = pack_header(header)


def _node_at(summary: Any, node_units: U32) -> tuple[U32, U32]:
    """(unit from the container's start, size in units) of every wide node."""
    unit = np.uint32(HEADER_UNITS) + node_units[: int(summary["nodes"])]
    return unit, np.diff(unit, append=summary["leaf_unit"]).astype(np.uint32)


def link_nodes(
    parameters: NDArray[Any],
    encode_summary: NDArray[Any],
    wide_children: I32,
    places: U32,
    ranges: U32,
    node_units: U32,
    blocks: U32,
    words: U32,
    parent_links: U32,
    block_words: int = 2,
) -> None:
    """Twin of link_nodes.wgsl; `block_words` is what fills its $block slot."""
    summary = encode_summary[0]
    if not summary["fits"]:
        return
    count, base = int(summary["nodes"]), int(parameters["base_unit"][0])
    unit, size = _node_at(summary, node_units)
    pointer = unit << np.uint32(3) | np.where(size == 1, NODE_BOX_FP16, NODE_BOX_FP32).astype("u4")
    children = _children(count, wide_children)
    span = ranges.reshape(-1, 2)[places[:count]]
    pointers = np.full((count, 4), INVALID_POINTER, np.uint32)
    leaf = span[:, 0].copy()
    for slot in range(4):
        child = children[:, slot]
        inner = child >= 0
        pointers[inner, slot] = pointer[child[inner]]
        is_leaf = np.flatnonzero(~inner & (child != EMPTY))
        held = blocks.reshape(-1, block_words)[~child[is_leaf]] != NONE
        kind = (held.sum(axis=1) - 1).astype(np.uint32)
        at = summary["leaf_unit"] + leaf[is_leaf]
        pointers[is_leaf, slot] = at << np.uint32(3) | kind
        leaf[is_leaf] += np.uint32(1)
        leaf[inner] = span[child[inner], 1] + np.uint32(1)
    units = words.reshape(-1, UNIT_WORDS)
    units[base + unit, :4] = pointers
    used = pointers != INVALID_POINTER
    above = np.broadcast_to(pointer[:, None], pointers.shape)
    parent_links[base + (pointers[used] >> np.uint32(3))] = above[used]
    parent_links[base + unit[size == 2] + 1] = INVALID_POINTER
    parent_links[base : base + HEADER_UNITS + 1] = INVALID_POINTER


def pack_boxes(
    parameters: NDArray[Any],
    encode_summary: NDArray[Any],
    wide_children: I32,
    places: U32,
    bounds: U32,
    boxes: U32,
    node_units: U32,
    words: U32,
) -> None:
    """Twin of pack_boxes.wgsl: all words of box nodes but the pointers."""
    summary = encode_summary[0]
    if not summary["fits"]:
        return
    unit, size = _node_at(summary, node_units)
    unit = unit + parameters["base_unit"][0]
    children = _children(int(summary["nodes"]), wide_children)
    child_boxes = _child_boxes(children, places, bounds.view(np.float32), boxes.view(np.float32))
    empty = children == EMPTY
    units = words.reshape(-1, UNIT_WORDS)
    half = size == 1
    exact = np.where(empty[half, :, None, None], np.float32(0), child_boxes[half])
    packed = pack_half_bounds(exact[:, :, 0], exact[:, :, 1])
    packed[empty[half]] = EMPTY_BOUND_FP16
    units[unit[half], BOX_BOUNDS_WORD:] = packed.reshape(-1, 12)
    flat = child_boxes[~half].view(np.uint32).reshape(-1, 4, 6)
    flat[empty[~half]] = EMPTY_BOUND_FP32
    flat = flat.reshape(-1, 24)
    split = UNIT_WORDS - BOX_BOUNDS_WORD
    units[unit[~half], BOX_BOUNDS_WORD:] = flat[:, :split]
    units[unit[~half] + 1, : BOX_FP32_TAIL_WORD - UNIT_WORDS] = flat[:, split:]
    units[unit[~half] + 1, BOX_FP32_TAIL_WORD - UNIT_WORDS :] = 0


def write_blocks(
    parameters: NDArray[Any],
    encode_summary: NDArray[Any],
    leaf_order: U32,
    blocks: U32,
    triangles: U32,
    triangle_ids: U32,
    words: U32,
) -> None:
    """Twin of write_blocks.wgsl."""
    summary = encode_summary[0]
    if not summary["fits"]:
        return
    count = int(summary["leaves"])
    block = blocks.reshape(-1, 2)[leaf_order[:count]]
    corners = triangles[: 9 * (len(triangles) // 9)].reshape(-1, 3, 3)
    ids = triangle_ids.reshape(-1, 2)
    nibble = np.array(ROTATION_NIBBLES, np.uint32)
    one, corner = block[:, 0] & np.uint32(TRIANGLE_MASK), block[:, 0] >> np.uint32(CORNER_SHIFT)
    at = int(parameters["base_unit"][0]) + int(summary["leaf_unit"])
    out = words.reshape(-1, UNIT_WORDS)[at : at + count]
    for slot in range(3):
        out[:, 3 * slot : 3 * slot + 3] = corners[one, (corner + slot) % 3]
    out[:, 9:12] = out[:, 6:9]
    out[:, 12], out[:, 13] = ids[one, 0], ids[one, 1]
    out[:, 14] = INVALID_POINTER
    out[:, 15] = nibble[(3 - corner) % 3]
    pair = np.flatnonzero(block[:, 1] != NONE)
    two = block[pair, 1] & np.uint32(TRIANGLE_MASK)
    apex = block[pair, 1] >> np.uint32(CORNER_SHIFT)
    out[pair, 9:12] = corners[two, apex]
    out[pair, 14] = ids[two, 1]
    out[pair, 15] |= nibble[(4 - apex) % 3] << np.uint32(8)


TWINS: dict[str, Callable[..., None]] = {
    "choose_formats": choose_formats,
    "write_header": write_header,
    "link_nodes": link_nodes,
    "pack_boxes": pack_boxes,
    "write_blocks": write_blocks,
}
