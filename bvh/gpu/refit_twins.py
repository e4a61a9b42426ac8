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
    HALF_BOX,
    NO_VERTEX,
    PENDING_NONFINITE,
    REFIT_PARAMETERS,
    TILE_LEVELS,
    pyramid_levels,
    pyramid_sizes,
)
from bvh.layout import (
    BOX_FP16_CHILD_WORDS,
    BOX_FP32_CHILD_WORDS,
    TRIANGLE_V2_WORD,
    TRIANGLE_V4_WORD,
    UNIT_BYTES,
    UNIT_WORDS,
    pack_half_bounds,
)

U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


def ordered(bits: NDArray[Any]) -> I32:
    """Float bits as integers of the same order (-0 below +0), and back."""
    signed = np.ascontiguousarray(bits).view(np.int32)
    return signed ^ ((signed >> 31) & np.int32(0x7FFFFFFF))


def refit_blocks(
    parameters: NDArray[Any],
    positions: U32,
    block_vertices: U32,
    words: U32,
    boxes: I32,
    counts: U32,
) -> None:
    """Twin of refit_blocks.wgsl: corners into blocks, and their boxes (six ordered integers)."""
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
    boxes[: 6 * blocks] = box.reshape(-1)


def join_levels(boxes: I32, blocks: int, first: int, count: int) -> None:
    """`count` levels of the pyramid above `first`, as far as it goes."""
    sizes = pyramid_sizes(blocks)
    every = boxes[: 6 * sum(sizes)].reshape(-1, 6)
    for level in range(first, min(first + count, len(sizes) - 1)):
        start = sum(sizes[:level])
        below = every[start : start + sizes[level]]
        above = every[start + sizes[level] :][: sizes[level + 1]]
        fours = np.arange(0, len(below), 4)
        above[:, :3] = np.minimum.reduceat(below[:, :3], fours)
        above[:, 3:] = np.maximum.reduceat(below[:, 3:], fours)


def refit_pyramid(parameters: NDArray[Any], boxes: I32, counts: U32) -> None:
    """Twin of refit_pyramid.wgsl: TILE_LEVELS levels above `level`."""
    p = parameters[0]
    if p["level"] == 0:
        counts[FOUND_NONFINITE], counts[PENDING_NONFINITE] = counts[PENDING_NONFINITE], 0
        counts[FOUND_OVERFLOW] = 0
    join_levels(boxes, int(p["blocks"]), int(p["level"]), TILE_LEVELS)


def run_boxes(boxes: I32, blocks: int, first: I64, last: I64) -> I32:
    """[n, 6] box of each run of blocks, none of them empty, walked as in refit_runs.wgsl."""
    found = np.empty((len(first), 6), np.int32)
    found[:, :3], found[:, 3:] = 0x7FFFFFFF, -0x7FFFFFFF
    every = boxes.reshape(-1, 6)
    rows, left, right = np.arange(len(first)), first, last
    start = 0
    for size in pyramid_sizes(blocks):
        split = np.minimum(left | 3, right)
        rest = np.maximum(right & ~3, left)
        for step in range(4):
            for at in (np.minimum(left + step, split), np.minimum(rest + step, right)):
                box = every[start + at]
                found[rows, :3] = np.minimum(found[rows, :3], box[:, :3])
                found[rows, 3:] = np.maximum(found[rows, 3:], box[:, 3:])
        left, right = left // 4 + 1, right // 4 - 1
        more = left <= right
        rows, left, right = rows[more], left[more], right[more]
        start += size
    return found


def refit_nodes(parameters: NDArray[Any], slots: U32, boxes: I32, words: U32, counts: U32) -> None:
    """Twin of refit_nodes.wgsl: children's boxes into nodes, and the header's bounds."""
    p = parameters[0]
    place, first, last = slots.reshape(-1, 3)[: int(p["slots"])].astype(np.int64).T
    bits = ordered(run_boxes(boxes, int(p["blocks"]), first, last)).view(np.uint32)
    half = (place & HALF_BOX) != 0
    at = (UNIT_WORDS * int(p["base_unit"]) + (place & ~HALF_BOX))[:, None]
    values = bits[half].view(np.float32)
    packed = pack_half_bounds(values[:, :3], values[:, 3:])
    infinite = (packed.view(np.uint16) & 0x7FFF) == 0x7C00
    counts[FOUND_OVERFLOW] += infinite.any(axis=-1).sum(dtype=np.uint32)
    words[at[half] + np.arange(BOX_FP16_CHILD_WORDS)] = packed
    words[at[~half] + np.arange(BOX_FP32_CHILD_WORDS)] = bits[~half]


def make_parameters(
    plan: RefitPlan,
    base_bytes: int,
    vertex_words: int,
    vertex_first: int = 0,
) -> list[NDArray[Any]]:
    """REFIT_PARAMETERS records: one for blocks and nodes, then one a dispatch of the pyramid."""
    records = []
    for level in (0, *pyramid_levels(plan.blocks)):
        record = np.zeros(1, REFIT_PARAMETERS.dtype)
        record["base_unit"] = base_bytes // UNIT_BYTES
        record["leaf_unit"] = plan.leaf_unit
        record["blocks"] = plan.blocks
        record["slots"] = len(plan.slots)
        record["vertex_words"] = vertex_words
        record["vertex_first"] = vertex_first
        record["level"] = level
        records.append(record)
    return records


def refit(
    plan: RefitPlan, words: U32, positions: NDArray[np.float32], base_bytes: int = 0
) -> tuple[int, int]:
    """The same on the CPU: refits `words` in place from positions `[v, 3]`. Returns the counts
    (blocks with a corner that is not finite, children's boxes beyond binary16)."""
    boxes = np.zeros(6 * sum(pyramid_sizes(plan.blocks)), np.int32)
    counts = np.zeros(4, np.uint32)
    vertices = np.ascontiguousarray(positions, np.float32).view(np.uint32).reshape(-1)
    whole, *levels = make_parameters(plan, base_bytes, 3)
    refit_blocks(whole, vertices, plan.block_vertices, words, boxes, counts)
    for record in levels:
        refit_pyramid(record, boxes, counts)
    refit_nodes(whole, plan.slots, boxes, words, counts)
    return int(counts[FOUND_NONFINITE]), int(counts[FOUND_OVERFLOW])
