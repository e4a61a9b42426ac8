"""Triangles to blocks on the GPU: pairs among neighbours in input order, then among all triangles
that are left (`bvh.gpu.pair_far`), then the blocks in a row.

The rules are those of `bvh.pairing`: an edge in common bit for bit, in opposite directions, one
geometry, and a common box that wastes little. Within a tile of 256 triangles every edge has a slot
of a hash table in workgroup memory, which keeps the lowest half-edge of each direction: these two
are candidates for a pair. Then in rounds every triangle without a partner names the best of its
candidates, and mutual choices become pairs. That is the parallel form of taking the best candidate
of all first; ROUNDS of it leave few that the greedy matching would still find.

Everything that decides is integer arithmetic or float32 products kept apart, and nothing depends on
the order of lanes, so the twins give the same bytes on any adapter.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.block_stages import BlockStages
from bvh.gpu.build_records import BUILD_STATE, group_count, sweep_groups
from bvh.gpu.pair_far import (
    PASSES,
    choose_far,
    clear_edges,
    insert_edges,
    settle_far,
    table_slots,
)
from bvh.gpu.pair_far import ROUNDS as FAR_ROUNDS
from bvh.gpu.pair_records import PAIR_PARAMETERS
from bvh.gpu.pair_stages import make_blocks, pair_near
from bvh.gpu.triangle_setup import triangle_setup
from engine.gpu.device import Device

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

TWINS: dict[str, Callable[..., None]] = {
    "triangle_setup": triangle_setup,
    "pair_near": pair_near,
    "clear_edges": clear_edges,
    "insert_edges": insert_edges,
    "choose_far": choose_far,
    "settle_far": settle_far,
    "make_blocks": make_blocks,
}


class GpuPairing(BlockStages):
    """Blocks of up to `capacity` triangles, one (`leaf` 1) or up to two each; `blocks` has two
    words each. LimitError where a buffer would not fit."""

    twins = TWINS
    phase = "pairs"

    def __init__(self, device: Device, capacity: int, leaf: int = 2) -> None:
        self.leaf = leaf
        sizes = {
            "mates": 4 * capacity,
            "edge_table": 8 * table_slots(capacity),
            "choices": 8 * capacity,
            "blocks": 8 * capacity,
        }
        super().__init__(device, capacity, sizes)
        self._parameters = [
            device.buffer("pairs/parameters", PAIR_PARAMETERS.size, "UNIFORM|COPY_DST")
            for _ in range(PASSES)
        ]
        self.resources["parameters"] = self._parameters[0]
        self.set_count(capacity)

    def write_parameters(self) -> None:
        for number, buffer in enumerate(self._parameters):
            record = pair_parameters(self.count, self.leaf, self.capacity, number)
            self.device.write(buffer, record)

    def encode_blocks(self, scope: Any, resources: dict[str, Any], groups: int) -> None:
        self.stages["pair_near"].dispatch(scope, resources, groups)
        if self.leaf > 1:
            self._encode_far(scope, resources)
        self.scan.encode(scope, self.resources["starts"])
        self.stages["make_blocks"].dispatch(scope, resources, groups)

    def _encode_far(self, scope: Any, resources: dict[str, Any]) -> None:
        groups = max(1, min(group_count(self.count), sweep_groups(self.device)))
        for parameters in self._parameters:
            here = {**resources, "parameters": parameters}
            for name in ("clear_edges", "insert_edges", *FAR_ROUNDS * ("choose_far", "settle_far")):
                self.stages[name].dispatch(scope, here, groups)


def pair_parameters(count: int, leaf: int, capacity: int, number: int = 0) -> NDArray[Any]:
    """One PAIR_PARAMETERS record, of pass `number` over all triangles."""
    record = np.zeros(1, PAIR_PARAMETERS.dtype)
    record["count"] = count
    record["leaf"] = leaf
    record["table_mask"] = table_slots(capacity) - 1
    record["seed"] = 0x1234567 * number
    return record


def pair_on_cpu(
    triangles: F32, ids: U32, leaf: int, capacity: int
) -> tuple[NDArray[Any], U32, F32]:
    """(state, blocks `[kept, 2]`, boxes `[kept, 2, 3]`) of `[n, 3, 3]` triangles and their
    `[n, 2]` ids, as GpuPairing of that capacity leaves them."""
    count = len(triangles)
    flat = np.ascontiguousarray(triangles, np.float32).reshape(-1)
    parameters = pair_parameters(count, leaf, capacity)
    state = np.zeros(1, BUILD_STATE.dtype)
    boxes, block_boxes = np.zeros((2, 6 * count), np.float32)
    mates, starts = np.zeros((2, count), np.uint32)
    blocks = np.zeros((count, 2), np.uint32)
    triangle_setup(parameters, flat, boxes, state)
    words, ids = flat.view(np.uint32), ids.reshape(-1)
    pair_near(parameters, words, ids, boxes, mates, starts)
    if leaf > 1:
        table, choices = np.zeros(2 * table_slots(capacity), np.uint32), np.zeros(2 * count, "u4")
        for number in range(PASSES):
            parameters = pair_parameters(count, leaf, capacity, number)
            clear_edges(parameters, table)
            insert_edges(parameters, words, mates, table, choices)
            for _ in range(FAR_ROUNDS):
                choose_far(parameters, words, ids, boxes, mates, table, choices)
                settle_far(parameters, choices, mates, starts)
    kept = starts.sum(dtype=np.uint32)
    starts = np.cumsum(starts, dtype=np.uint32) - starts
    make_blocks(
        parameters,
        boxes,
        mates,
        starts,
        np.array([kept]),
        blocks.reshape(-1),
        block_boxes,
        state.view(np.uint32),
    )
    return state, blocks[:kept], block_boxes.reshape(-1, 2, 3)[:kept]
