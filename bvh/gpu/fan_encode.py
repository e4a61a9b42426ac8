"""Guest bytes with fans on the GPU: the encoder of `bvh.gpu.encode` over blocks of four words, and
the table of primitive ids behind them, as `bvh.fan_blocks` writes it.

Fans are counted in depth-first order before the header, which needs their number; the scan of that
count is each fan's row.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.fan_blocks import fan_rows_start, pack_fan_table, pack_fans
from bvh.fans import Fans
from bvh.gpu.encode import GpuEncode
from bvh.gpu.encode_stages import TWINS as ENCODE_TWINS
from bvh.gpu.encode_stages import link_nodes
from bvh.gpu.pair_records import CORNER_SHIFT, NONE, TRIANGLE_MASK
from bvh.layout import (
    FAN_ROW_WORDS,
    GEOMETRY_INDEX_MASK,
    INVALID_POINTER,
    UNIT_WORDS,
)
from bvh.triangles import TriangleSet
from engine.gpu.device import Device
from engine.gpu.primitives.scan import ExclusiveScan

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


def host_fans(blocks: U32) -> Fans:
    """Blocks `[n, 4]` as GpuFans leaves them in the host's form."""
    held = blocks != NONE
    triangles = (blocks & np.uint32(TRIANGLE_MASK)).astype(np.int32)
    corners = (blocks >> np.uint32(CORNER_SHIFT)).astype(np.int32)
    return Fans(np.where(held, triangles, -1), np.where(held, corners, 0))


def mark_fans(
    state: NDArray[Any], leaf_order: U32, blocks: U32, fan_rows: U32, leaf_count: U32
) -> None:
    """Twin of mark_fans.wgsl."""
    count = int(state["kept"][0])
    leaf_count[0] = count
    fan_rows[:count] = blocks.reshape(-1, 4)[leaf_order[:count], 2] != NONE


def write_fans(
    parameters: NDArray[Any],
    encode_summary: NDArray[Any],
    leaf_order: U32,
    blocks: U32,
    triangles: U32,
    triangle_ids: U32,
    fan_rows: U32,
    words: U32,
) -> None:
    """Twin of write_fans.wgsl."""
    summary = encode_summary[0]
    if not summary["fits"]:
        return
    count = int(summary["leaves"])
    ids = triangle_ids.reshape(-1, 2)
    geometry = ids[:, 0]
    opaque = np.zeros(int((geometry & np.uint32(GEOMETRY_INDEX_MASK)).max(initial=0)) + 1, np.bool_)
    corners = triangles[: 9 * (len(triangles) // 9)].view(np.float32).reshape(-1, 3, 3)
    every = TriangleSet(corners, geometry, ids[:, 1], 0, 0)
    records, _, fan_ids = pack_fans(
        host_fans(blocks.reshape(-1, 4)[leaf_order[:count]]), every, opaque
    )
    at = int(parameters["base_unit"][0]) + int(summary["leaf_unit"])
    words.reshape(-1, UNIT_WORDS)[at : at + count] = records
    fan = np.flatnonzero(fan_ids[:, 0] != INVALID_POINTER)
    table = words[UNIT_WORDS * (at + count) :]
    row = (fan_rows_start(count) + fan_rows[fan].astype(np.int64)) * FAN_ROW_WORDS
    table[row[:, None] + np.arange(FAN_ROW_WORDS)] = fan_ids[fan]


def write_fan_groups(
    parameters: NDArray[Any],
    encode_summary: NDArray[Any],
    fan_rows: U32,
    words: U32,
    parent_links: U32,
) -> None:
    """Twin of write_fan_groups.wgsl: the table but for its rows."""
    summary = encode_summary[0]
    fans, count = int(summary["fans"]), int(summary["leaves"])
    if not summary["fits"] or not fans:
        return
    is_fan = np.diff(fan_rows[:count], append=np.uint32(fans)) != 0
    marks = np.where(is_fan[:, None], np.uint32(0), np.uint32(INVALID_POINTER))
    table = pack_fan_table(np.broadcast_to(marks, (count, FAN_ROW_WORDS)))
    unit = int(parameters["base_unit"][0]) + int(summary["leaf_unit"]) + count
    start = fan_rows_start(count) * FAN_ROW_WORDS
    end = start + fans * FAN_ROW_WORDS
    out = words[UNIT_WORDS * unit : UNIT_WORDS * unit + len(table)]
    out[:start], out[end:] = table[:start], table[end:]
    parent_links[unit : unit + len(table) // UNIT_WORDS] = INVALID_POINTER


TWINS: dict[str, Callable[..., None]] = {
    **{name: twin for name, twin in ENCODE_TWINS.items() if name != "write_blocks"},
    "mark_fans": mark_fans,
    "link_nodes": partial(link_nodes, block_words=4),
    "write_fans": write_fans,
    "write_fan_groups": write_fan_groups,
}


class GpuFanEncode(GpuEncode):
    """As GpuEncode, over the blocks of a GpuFans."""

    twins = TWINS
    block_shader = "bvh/gpu/shaders/block_fan.wgsl"
    leaf_stages = ("write_fans", "write_fan_groups")

    def __init__(self, device: Device, capacity: int, nodes: str = "auto") -> None:
        super().__init__(device, capacity, nodes)
        device.check_binding("encode/fan_rows", 4 * capacity)
        self.resources["fan_rows"] = device.buffer("encode/fan_rows", 4 * capacity)
        leaf_count = device.buffer("encode/leaf_count", 4)
        self._fan_scan = ExclusiveScan(device, capacity, with_total=True, live=leaf_count)
        self.resources["leaf_count"] = leaf_count
        self.resources["fan_total"] = self._fan_scan.total

    def _count_fans(self, scope: Any, resources: dict[str, Any], groups: int) -> None:
        self._fan_scan.set_count(self.count)
        self.stages["mark_fans"].dispatch(scope, resources, groups)
        self._fan_scan.encode(scope, resources["fan_rows"])
