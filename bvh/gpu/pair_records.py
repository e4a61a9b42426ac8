"""Records that the stages from triangles to blocks share with the host.

A half-edge is 3 * triangle + corner: the edge opposite that corner. A mate is the own corner in
bits 31:30 and the partner's number below, or one of two marks. A block is two words, a triangle
and its corner each in the same way: the first's corner is the original vertex that becomes V0, the
second's the one that becomes V3; a block of one triangle has NONE for its second.
"""

import numpy as np
from numpy.typing import NDArray

from bvh.pairing import WORST_RATIO, Blocks
from bvh.triangles import opaque_words
from engine.gpu.structs import Field, Struct

U32 = NDArray[np.uint32]

NONE = 0xFFFFFFFF
REMOVED = 0xFFFFFFFE  # a triangle that set-up took out
CORNER_SHIFT = 30
MOST_TRIANGLES = 1 << CORNER_SHIFT
TRIANGLE_MASK = MOST_TRIANGLES - 1
NEAR_TILE = 256  # triangles among which one workgroup pairs

PAIR_PARAMETERS = Struct(
    "PairParameters",
    Field("count", "u32"),  # triangles given
    Field("leaf", "u32"),  # triangles a block
    Field("zero", "u32"),  # 0, unknown to the compiler
    Field("table_mask", "u32"),  # slots of the table of edges, less one
    Field("seed", "u32"),  # of the hash that finds an edge's slot
    Field("pad_0", "u32"),
    Field("pad_1", "u32"),
    Field("pad_2", "u32"),
)


def triangle_ids(geometry: U32, primitive: U32, opaque: NDArray[np.bool_]) -> U32:
    """`[n, 2]`: the geometry word of a block (index and opaque bit) and the primitive's number,
    for each triangle."""
    return np.stack([opaque_words(geometry, opaque), primitive], axis=1).astype(np.uint32)


def host_blocks(blocks: U32) -> Blocks:
    """Blocks `[n, 2]` as GpuPairing leaves them in the host's form."""
    second = blocks[:, 1].astype(np.int64)
    single = second == NONE
    first = blocks[:, 0].astype(np.int64)
    return Blocks(
        (first & TRIANGLE_MASK).astype(np.int32),
        np.where(single, -1, second & TRIANGLE_MASK).astype(np.int32),
        (first >> CORNER_SHIFT).astype(np.int32),
        np.where(single, 0, second >> CORNER_SHIFT).astype(np.int32),
    )


def wgsl() -> str:
    """The record and constants for shaders."""
    names = ("NONE", "REMOVED", "CORNER_SHIFT")
    lines = [f"const {name}: u32 = {globals()[name]}u;" for name in names]
    lines.append(f"const WORST_RATIO: f32 = {WORST_RATIO};")
    text = "\n".join(["// Generated from bvh/gpu/pair_records.py.", *lines])
    return f"{text}\n{PAIR_PARAMETERS.wgsl()}"
