"""The refit on the CPU: the stages' twins, their parameters, and all of them in order.

What the stages do and why is in `bvh.gpu.refit`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.refit_plan import RefitPlan
from bvh.gpu.refit_records import (
    FOUND_NONFINITE,
    FOUND_OVERFLOW,
    HALF_NODE,
    HEADER_BOUNDS_WORD,
    NO_CHILD,
    NO_VERTEX,
    PENDING_NONFINITE,
    PENDING_OVERFLOW,
    REFIT_PARAMETERS,
)
from bvh.layout import (
    BOX_BOUNDS_WORD,
    BOX_FP32_TAIL_WORD,
    BOX_WIDTH,
    EMPTY_BOUND_FP16,
    EMPTY_BOUND_FP32,
    TRIANGLE_V2_WORD,
    TRIANGLE_V4_WORD,
    UNIT_BYTES,
    UNIT_WORDS,
    pack_half_bounds,
)

U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]

_EMPTY_LOW, _EMPTY_HIGH = 0x7FFFFFFF, -0x7FFFFFFF


def ordered(bits: NDArray[Any]) -> I32:
    """Float bits as integers of the same order (-0 below +0), and back."""
    signed = np.ascontiguousarray(bits).view(np.int32)
    return signed ^ ((signed >> 31) & np.int32(0x7FFFFFFF))


def refit_blocks(
    parameters: NDArray[Any],
    positions: U32,
    block_vertices: U32,
    words: U32,
    boxes: U32,
    counts: U32,
) -> None:
    """Twin of refit_blocks.wgsl: corners into blocks, and their boxes (six float bits each)."""
    p = parameters[0]
    blocks, first_word, stride = (int(p[n]) for n in ("blocks", "vertex_first", "vertex_words"))
    ids = block_vertices.reshape(-1, 5)[:blocks].astype(np.int64)
    fan = ids[:, 4] != NO_VERTEX
    ids[~fan, 4] = ids[~fan, 2]
    corners = positions[first_word + ids[..., None] * stride + np.arange(3)]  # [b, 5, 3]
    good = ((corners & 0x7F800000) != 0x7F800000).all(axis=2)
    counts[PENDING_NONFINITE] += (~good.all(axis=1)).sum(dtype=np.uint32)
    first = UNIT_WORDS * int(p["base_unit"] + p["leaf_unit"])
    held = words[first : first + UNIT_WORDS * blocks].reshape(-1, UNIT_WORDS)
    lost = ~good[:, 2]
    corners[lost] = held[lost, None, TRIANGLE_V2_WORD : TRIANGLE_V2_WORD + 3]
    apex = np.broadcast_to(corners[:, 2:3], corners.shape)
    corners = np.where((good | lost[:, None])[..., None], corners, apex)
    held[:, :TRIANGLE_V4_WORD] = corners[:, :4].reshape(-1, TRIANGLE_V4_WORD)
    held[fan, TRIANGLE_V4_WORD : TRIANGLE_V4_WORD + 3] = corners[fan, 4]
    keys = ordered(corners)
    box = np.concatenate([keys.min(axis=1), keys.max(axis=1)], axis=1)
    boxes[: 6 * blocks] = ordered(box).view(np.uint32).reshape(-1)


def refit_nodes(
    parameters: NDArray[Any],
    height_starts: U32,
    node_units: U32,
    node_children: U32,
    words: U32,
    boxes: U32,
    counts: U32,
) -> None:
    """Twin of refit_nodes.wgsl: the heights [height_first, height_end), from the lowest up."""
    p = parameters[0]
    base, blocks = int(p["base_unit"]), int(p["blocks"])
    units = words.reshape(-1, UNIT_WORDS)
    bits = boxes[: 6 * (blocks + int(p["nodes"]))].reshape(-1, 6)
    for height in range(int(p["height_first"]), int(p["height_end"])):
        rows = np.arange(height_starts[height], height_starts[height + 1])
        children = node_children.reshape(-1, BOX_WIDTH)[rows]
        used = children != NO_CHILD
        child = bits[np.where(used, children, 0)]  # [n, 4, 6]
        unit = node_units[rows]
        half = (unit & np.uint32(HALF_NODE)) != 0
        at = base + (unit & np.uint32(HALF_NODE - 1)).astype(np.int64)
        values = np.where(used[..., None], child, 0).astype(np.uint32).view(np.float32)
        packed = pack_half_bounds(values[half][..., :3], values[half][..., 3:])
        infinite = (packed.view(np.uint16) & 0x7FFF) == 0x7C00
        counts[PENDING_OVERFLOW] += infinite.any(axis=-1).sum(dtype=np.uint32)
        packed[~used[half]] = EMPTY_BOUND_FP16
        units[at[half], BOX_BOUNDS_WORD:] = packed.reshape(-1, 12)
        wide = np.where(used[..., None], child, EMPTY_BOUND_FP32)[~half].astype(np.uint32)
        wide = wide.reshape(-1, BOX_FP32_TAIL_WORD - BOX_BOUNDS_WORD)
        split = UNIT_WORDS - BOX_BOUNDS_WORD
        units[at[~half], BOX_BOUNDS_WORD:] = wide[:, :split]
        units[at[~half] + 1, : BOX_FP32_TAIL_WORD - UNIT_WORDS] = wide[:, split:]
        keys = ordered(child)
        low = np.where(used[..., None], keys[..., :3], np.int32(_EMPTY_LOW)).min(axis=1)
        high = np.where(used[..., None], keys[..., 3:], np.int32(_EMPTY_HIGH)).max(axis=1)
        bits[blocks + rows] = ordered(np.concatenate([low, high], axis=1)).view(np.uint32)
    if p["height_end"] == p["heights"]:
        if blocks:
            header = UNIT_WORDS * base + HEADER_BOUNDS_WORD
            words[header : header + 6] = bits[-1]
        counts[FOUND_NONFINITE], counts[PENDING_NONFINITE] = counts[PENDING_NONFINITE], 0
        counts[FOUND_OVERFLOW], counts[PENDING_OVERFLOW] = counts[PENDING_OVERFLOW], 0


def make_parameters(
    plan: RefitPlan, base_bytes: int, vertex_words: int, vertex_first: int = 0
) -> list[NDArray[Any]]:
    """One REFIT_PARAMETERS record a dispatch over nodes; the first serves the blocks, too."""
    top = plan.top_height
    records = []
    for first in range(top + 1):
        record = np.zeros(1, REFIT_PARAMETERS.dtype)
        record["base_unit"] = base_bytes // UNIT_BYTES
        record["leaf_unit"] = plan.leaf_unit
        record["blocks"] = plan.blocks
        record["nodes"] = plan.nodes
        record["vertex_words"] = vertex_words
        record["vertex_first"] = vertex_first
        record["height_first"] = first
        record["height_end"] = first + 1 if first < top else plan.heights
        record["heights"] = plan.heights
        record["own_first"] = NO_CHILD
        if first == top:
            record["own_first"] = plan.blocks + plan.height_starts[top]
        records.append(record)
    return records


def refit(
    plan: RefitPlan, words: U32, positions: NDArray[np.float32], base_bytes: int = 0
) -> tuple[int, int]:
    """The same on the CPU: refits `words` in place from positions `[v, 3]`. Returns the counts
    (blocks with a corner that is not finite, children's boxes beyond binary16)."""
    boxes = np.zeros(6 * (plan.blocks + plan.nodes), np.uint32)
    counts = np.zeros(4, np.uint32)
    vertices = np.ascontiguousarray(positions, np.float32).view(np.uint32).reshape(-1)
    records = make_parameters(plan, base_bytes, 3)
    refit_blocks(records[0], vertices, plan.block_vertices, words, boxes, counts)
    for record in records:
        refit_nodes(
            record,
            plan.height_starts,
            plan.node_units,
            plan.node_children,
            words,
            boxes,
            counts,
        )
    return int(counts[FOUND_NONFINITE]), int(counts[FOUND_OVERFLOW])
