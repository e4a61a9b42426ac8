"""Guest bytes from a four-wide tree on the GPU: the container that `bvh.encode.encode` writes.

Every wide node chooses its format (1 unit FP16 or 2 units FP32), a scan over the units gives each
its place, one lane writes the header, and then pointers, boxes and blocks are written where they
belong, from children that lie in depth-first order. Leaves need no scan: a node's leaves are a run
of depth-first order, known from its binary node's range. Half bounds are rounded by integers, so
that the bytes are the same on every adapter.

The exact size is known after the scan, on the GPU. Where it is more than the output has room for,
nothing is written and `encode_summary` says so; `read_summary` raises.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.encode import choose_half
from bvh.fan_blocks import fan_table_units
from bvh.gpu.build_records import group_count, sweep_groups
from bvh.gpu.encode_records import ENCODE_PARAMETERS, ENCODE_SUMMARY, FORMATS
from bvh.gpu.pair_records import CORNER_SHIFT, NONE
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
from bvh.pairing import Blocks
from bvh.tree import EMPTY, child_bounds
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.primitives.scan import ExclusiveScan
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
U32 = NDArray[np.uint32]

HEADER_UNITS = HEADER_BYTES // UNIT_BYTES
_TRIANGLE_MASK = np.uint32((1 << CORNER_SHIFT) - 1)


def host_blocks(blocks: U32) -> Blocks:
    """Blocks `[n, 2]` as GpuPairing leaves them in the host's form."""
    second = blocks[:, 1].astype(np.int64)
    single = second == NONE
    first = blocks[:, 0].astype(np.int64)
    mask = int(_TRIANGLE_MASK)
    return Blocks(
        (first & mask).astype(np.int32),
        np.where(single, -1, second & mask).astype(np.int32),
        (first >> CORNER_SHIFT).astype(np.int32),
        np.where(single, 0, second >> CORNER_SHIFT).astype(np.int32),
    )


def most_units(blocks: int) -> int:
    """Units that no container of so many blocks exceeds: every node with two children, FP32."""
    return HEADER_UNITS + 2 * max(blocks - 1, 1) + blocks


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
    one, corner = block[:, 0] & _TRIANGLE_MASK, block[:, 0] >> np.uint32(CORNER_SHIFT)
    at = int(parameters["base_unit"][0]) + int(summary["leaf_unit"])
    out = words.reshape(-1, UNIT_WORDS)[at : at + count]
    for slot in range(3):
        out[:, 3 * slot : 3 * slot + 3] = corners[one, (corner + slot) % 3]
    out[:, 9:12] = out[:, 6:9]
    out[:, 12], out[:, 13] = ids[one, 0], ids[one, 1]
    out[:, 14] = INVALID_POINTER
    out[:, 15] = nibble[(3 - corner) % 3]
    pair = np.flatnonzero(block[:, 1] != NONE)
    two = block[pair, 1] & _TRIANGLE_MASK
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


class GpuEncode:
    """Encodes trees of up to `capacity` blocks, with nodes `auto`, `fp16` or `fp32`.

    `encode` takes the buffers of the tree (state, boxes, bounds), of its order (ranges,
    leaf_order), of the collapse (wide_children, places, wide_summary), of the triangles (blocks,
    triangles, triangle_ids) and the output's (words, parent_links)."""

    twins = TWINS
    block_shader = "bvh/gpu/shaders/block_pair.wgsl"

    def __init__(self, device: Device, capacity: int, nodes: str = "auto") -> None:
        self.device = device
        self.capacity = capacity
        self.nodes = nodes
        most = max(capacity - 1, 1)
        device.check_binding("encode/node_units", 4 * most)
        self._scan_count = device.buffer("encode/node_count", 4)
        self._scan = ExclusiveScan(device, most, with_total=True, live=self._scan_count)
        self.resources = {
            "parameters": device.buffer(
                "encode/parameters", ENCODE_PARAMETERS.size, "UNIFORM|COPY_DST"
            ),
            "node_units": device.buffer("encode/node_units", 4 * most),
            "node_count": self._scan_count,
            "unit_total": self._scan.total,
            "fan_total": device.buffer("encode/fan_total", 4),
            "encode_summary": device.buffer("encode/summary", ENCODE_SUMMARY.size),
        }
        slots = {"block": self.block_shader}
        self.stages = {
            name: Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", slots=slots, twin=twin)
            for name, twin in self.twins.items()
        }
        self.capacity_units = 0
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """A bound on the blocks from now on; at most `capacity`, else ValueError."""
        if not 0 <= count <= self.capacity:
            raise ValueError(f"encoding of {count} blocks, made for {self.capacity}")
        self.count = count
        self._scan.set_count(max(count - 1, 1))

    def set_output(self, base_unit: int, capacity_units: int, geometry_count: int) -> None:
        """Where the container goes in the output, in units of 64 bytes from its start (a multiple
        of four: a descriptor counts in 256 bytes), and how many it may take there."""
        if base_unit % 4:
            raise ValueError(f"a container at unit {base_unit} is not aligned to 256 bytes")
        self.capacity_units = capacity_units
        self.device.write(
            self.resources["parameters"],
            encode_parameters(base_unit, capacity_units, self.nodes, geometry_count),
        )

    def phases(self, inputs: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """The encoder's one phase, into a pass that it is given."""
        return {"encode": partial(self._encode, {**inputs, **self.resources})}

    def encode(self, scope: Any, inputs: dict[str, Any]) -> None:
        """Within the pass `scope`, after the stages that fill `inputs`."""
        self.phases(inputs)["encode"](scope)

    def _encode(self, resources: dict[str, Any], scope: Any) -> None:
        nodes = min(group_count(max(self.count - 1, 1)), sweep_groups(self.device))
        leaves = max(1, min(group_count(self.count), sweep_groups(self.device)))
        self.stages["choose_formats"].dispatch(scope, resources, nodes)
        self._scan.encode(scope, self.resources["node_units"])
        self.stages["write_header"].dispatch(scope, resources, 1)
        self.stages["link_nodes"].dispatch(scope, resources, nodes)
        self.stages["pack_boxes"].dispatch(scope, resources, nodes)
        self.stages["write_blocks"].dispatch(scope, resources, leaves)

    def read_summary(self) -> NDArray[Any]:
        """The last container's ENCODE_SUMMARY record; LimitError where it did not fit."""
        buffer = self.resources["encode_summary"]
        summary = self.device.read(buffer, ENCODE_SUMMARY.dtype, count=1)
        if not summary["fits"][0]:
            raise LimitError(
                f"the container needs {UNIT_BYTES * int(summary['units'][0]):,} bytes, its buffer "
                f"has room for {UNIT_BYTES * self.capacity_units:,}"
            )
        return np.asarray(summary)


def encode_parameters(
    base_unit: int, capacity_units: int, nodes: str, geometry_count: int
) -> NDArray[Any]:
    """One ENCODE_PARAMETERS record."""
    record = np.zeros(1, ENCODE_PARAMETERS.dtype)
    record["base_unit"] = base_unit
    record["capacity_units"] = capacity_units
    record["node_format"] = FORMATS.index(nodes)
    record["geometry_count"] = geometry_count
    return record
