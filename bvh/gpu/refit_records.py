"""Records and constants that the refit's stages share with the host."""

from bvh.header import HEADER
from engine.gpu.structs import Field, Struct

NO_VERTEX = 0xFFFFFFFF
NO_BLAS = 0xFFFFFFFF
HALF_BOX = 0x80000000  # in a slot's word: an FP16 node's
# The pyramid over the blocks' boxes: a box joins four of the level below; of the last level there
# are PYRAMID_TOP or fewer, so that two runs of four take all of it.
PYRAMID_TOP = 8
TILE_LEVELS = 5  # made by each dispatch: 1024 boxes a workgroup
# Words of the counts.
PENDING_NONFINITE, FOUND_NONFINITE, FOUND_OVERFLOW = range(3)
HEADER_BOUNDS_WORD = HEADER.offsets["bounds_min"] // 4

REFIT_PARAMETERS = Struct(
    "RefitParameters",
    Field("base_unit", "u32"),  # of the container in its buffer, in 64-byte units
    Field("leaf_unit", "u32"),  # first block, from the base
    Field("blocks", "u32"),
    Field("slots", "u32"),
    Field("vertex_words", "u32"),  # from one vertex's position to the next
    Field("vertex_first", "u32"),  # word of vertex 0's position
    Field("level", "u32"),  # that this dispatch of the pyramid starts from
    Field("zero", "u32"),  # 0, unknown to the compiler
)


def pyramid_sizes(blocks: int) -> list[int]:
    """Boxes of every level of the pyramid, the blocks' own first."""
    sizes = [blocks]
    while sizes[-1] > PYRAMID_TOP:
        sizes.append(-(-sizes[-1] // 4))
    return sizes


def pyramid_levels(blocks: int) -> list[int]:
    """The level that each dispatch of the pyramid starts from; at least one."""
    last = len(pyramid_sizes(blocks)) - 1
    return list(range(0, max(last, 1), TILE_LEVELS))


def wgsl() -> str:
    """The record and constants for shaders."""
    names = ("NO_VERTEX", "NO_BLAS", "HALF_BOX", "HEADER_BOUNDS_WORD", "PYRAMID_TOP")
    counts = ("PENDING_NONFINITE", "FOUND_NONFINITE", "FOUND_OVERFLOW")
    lines = [f"const {name}: u32 = {globals()[name]}u;" for name in (*names, *counts)]
    text = "\n".join(["// Generated from bvh/gpu/refit_records.py.", *lines])
    return f"{text}\n{REFIT_PARAMETERS.wgsl()}"
