"""Records and constants that the refit's stages share with the host."""

from bvh.header import HEADER
from engine.gpu.structs import Field, Struct

# Nodes whose boxes one workgroup keeps in its memory (12 KiB): the heights above.
TOP_NODES = 512
NO_CHILD = 0xFFFFFFFF
NO_VERTEX = 0xFFFFFFFF
HALF_NODE = 0x80000000  # in a node's unit: its format
# Words of the counts.
PENDING_NONFINITE, PENDING_OVERFLOW, FOUND_NONFINITE, FOUND_OVERFLOW = range(4)
HEADER_BOUNDS_WORD = HEADER.offsets["bounds_min"] // 4
assert HEADER_BOUNDS_WORD % 4 == 0

REFIT_PARAMETERS = Struct(
    "RefitParameters",
    Field("base_unit", "u32"),  # of the container in its buffer, in 64-byte units
    Field("leaf_unit", "u32"),  # first block, from the base
    Field("blocks", "u32"),
    Field("nodes", "u32"),
    Field("vertex_words", "u32"),  # from one vertex's position to the next
    Field("height_first", "u32"),  # heights that this dispatch does
    Field("height_end", "u32"),
    Field("heights", "u32"),
    Field("own_first", "u32"),  # first box that the one workgroup keeps; none: NO_CHILD
    Field("vertex_first", "u32"),  # word of vertex 0's position
    Field("zero", "u32"),  # 0, unknown to the compiler
    Field("pad", "u32"),
)


def wgsl() -> str:
    """The record and constants for shaders."""
    names = ("TOP_NODES", "NO_CHILD", "NO_VERTEX", "HALF_NODE", "HEADER_BOUNDS_WORD")
    counts = ("PENDING_NONFINITE", "PENDING_OVERFLOW", "FOUND_NONFINITE", "FOUND_OVERFLOW")
    lines = [f"const {name}: u32 = {globals()[name]}u;" for name in (*names, *counts)]
    text = "\n".join(["// Generated from bvh/gpu/refit_records.py.", *lines])
    return f"{text}\n{REFIT_PARAMETERS.wgsl()}"
