"""Fans on the GPU: up to four triangles about a vertex, among neighbours in input order.

The rules are those of `bvh.fans`, within tiles of 256 triangles in workgroup memory: mates as
`bvh.gpu.pairing` finds them, then for each size from four down to two rounds in which every
candidate whose key is the lowest at each of its triangles is taken (`bvh.gpu.fan_choice`). A key is
the open neighbours of the fan's triangles, the waste in steps of 1/16, and a number of its own.

A fan stands at the place of its first triangle in `members` (four words, each an apex corner in
bits 31:30 and a triangle below, or NONE); these are also what `blocks` holds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.block_stages import BlockStages
from bvh.gpu.build_records import BUILD_STATE
from bvh.gpu.fan_choice import choose_fans, find_mates
from bvh.gpu.pair_records import NONE, PAIR_PARAMETERS, REMOVED, TRIANGLE_MASK
from bvh.gpu.pair_stages import count_blocks
from bvh.gpu.triangle_setup import triangle_setup
from bvh.layout import FAN_GEOMETRY_LIMIT, GEOMETRY_INDEX_MASK, INVALID_POINTER
from engine.gpu.device import Device

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


def fan_near(
    parameters: NDArray[Any],
    triangles: U32,
    triangle_ids: U32,
    triangle_boxes: F32,
    members: U32,
    starts: U32,
) -> None:
    """Twin of fan_near.wgsl."""
    count = int(parameters["count"][0])
    boxes = triangle_boxes[: 6 * count].reshape(count, 2, 3)
    usable = boxes[:, 0, 0] <= boxes[:, 1, 0]
    ids = triangle_ids[: 2 * count].reshape(count, 2)
    mate = find_mates(triangles[: 9 * count].reshape(count, 3, 3), ids, usable)
    sayable = (ids[:, 0] & GEOMETRY_INDEX_MASK) < FAN_GEOMETRY_LIMIT
    sayable &= ids[:, 1] != INVALID_POINTER
    found = choose_fans(mate, boxes, usable, sayable)
    members[: 4 * count] = found.reshape(-1)
    starts[:count] = found[:, 0] < REMOVED


def make_fan_blocks(
    parameters: NDArray[Any],
    triangle_boxes: F32,
    members: U32,
    starts: U32,
    block_total: U32,
    blocks: U32,
    boxes: F32,
    state: U32,
) -> None:
    """Twin of make_fan_blocks.wgsl: `starts` is scanned by now, `block_total` its sum."""
    count = int(parameters["count"][0])
    mine = members[: 4 * count].reshape(count, 4)
    every = triangle_boxes[: 6 * count].reshape(count, 2, 3)
    lead = mine[mine[:, 0] < REMOVED]
    box = every[lead[:, 0] & np.uint32(TRIANGLE_MASK)]
    for column in lead.T[1:]:
        held = np.flatnonzero(column != NONE)
        other = every[column[held] & np.uint32(TRIANGLE_MASK)]
        box[held, 0] = np.minimum(box[held, 0], other[:, 0])
        box[held, 1] = np.maximum(box[held, 1], other[:, 1])
    blocks[: 4 * len(lead)] = lead.reshape(-1)
    boxes[: 6 * len(lead)] = box.reshape(-1)
    count_blocks(state, mine[:, 0] == REMOVED, every, block_total)


TWINS: dict[str, Callable[..., None]] = {
    "triangle_setup": triangle_setup,
    "fan_near": fan_near,
    "make_fan_blocks": make_fan_blocks,
}


class GpuFans(BlockStages):
    """Blocks of up to `capacity` triangles, up to four each, in place of a GpuPairing: `blocks` has
    four words each. LimitError where a buffer would not fit."""

    twins = TWINS
    phase = "fans"

    def __init__(self, device: Device, capacity: int) -> None:
        super().__init__(device, capacity, {"members": 16 * capacity, "blocks": 16 * capacity})
        self.resources["parameters"] = device.buffer(
            "fans/parameters", PAIR_PARAMETERS.size, "UNIFORM|COPY_DST"
        )
        self.set_count(capacity)

    def write_parameters(self) -> None:
        self.device.write(self.resources["parameters"], fan_parameters(self.count))

    def encode_blocks(self, scope: Any, resources: dict[str, Any], groups: int) -> None:
        self.stages["fan_near"].dispatch(scope, resources, groups)
        self.scan.encode(scope, self.resources["starts"])
        self.stages["make_fan_blocks"].dispatch(scope, resources, groups)


def fan_parameters(count: int) -> NDArray[Any]:
    """One PAIR_PARAMETERS record."""
    record = np.zeros(1, PAIR_PARAMETERS.dtype)
    record["count"], record["leaf"] = count, 4
    return record


def fans_on_cpu(triangles: F32, ids: U32) -> tuple[NDArray[Any], U32, F32]:
    """(state, blocks `[kept, 4]`, boxes `[kept, 2, 3]`) of `[n, 3, 3]` triangles and their
    `[n, 2]` ids, as GpuFans leaves them."""
    count = len(triangles)
    flat = np.ascontiguousarray(triangles, np.float32).reshape(-1)
    parameters = fan_parameters(count)
    state = np.zeros(1, BUILD_STATE.dtype)
    boxes, block_boxes = np.zeros((2, 6 * count), np.float32)
    members, blocks = np.zeros((2, 4 * count), np.uint32)
    starts = np.zeros(count, np.uint32)
    triangle_setup(parameters, flat, boxes, state)
    fan_near(parameters, flat.view(np.uint32), ids.reshape(-1), boxes, members, starts)
    kept = int(starts.sum())
    total = np.array([kept], np.uint32)
    starts = np.cumsum(starts, dtype=np.uint32) - starts
    make_fan_blocks(
        parameters, boxes, members, starts, total, blocks, block_boxes, state.view(np.uint32)
    )
    return state, blocks.reshape(-1, 4)[:kept], block_boxes.reshape(-1, 2, 3)[:kept]
