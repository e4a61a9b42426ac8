"""Records that the stages of a build share with the host, and their buffer conventions.

Boxes are six float32 each (min x y z, max x y z), as in `bvh.tree.Bounds`. A triangle that was
taken out leaves an inverted box behind: min 1, max `-reason`. Keys are one or two u32 (low word
first); what was taken out has all bits set and so sorts behind everything kept.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.tree import MAX_DEPTH, STACK_LIMIT
from engine.gpu.structs import Field, Struct

U32 = NDArray[np.uint32]

TILE = 2048  # boxes a workgroup of the scene box
GROUP_SIZE = 256  # items a workgroup of every other stage
REMOVED_DEGENERATE = 1
REMOVED_NONFINITE = 2
LEFT_TURN = 1 << 16  # in the second word of a path, above the count of steps
# Stands for infinity, which WGSL does not promise to handle.
LARGEST = np.finfo(np.float32).max

BUILD_PARAMETERS = Struct(
    "BuildParameters",
    Field("count", "u32"),  # triangles or boxes given
    Field("key_words", "u32"),  # 1 or 2
    Field("grid_bits", "u32"),  # of a code, an axis
    Field("max_depth", "u32"),  # levels of inner nodes
    Field("level", "u32"),  # the first of a pyramid dispatch; the one that a collapse dispatch does
    Field("zero", "u32"),  # 0, unknown to the compiler
    Field("size_bits", "u32"),  # of a code
    Field("attempt", "u32"),  # 1: the hierarchy again, if the first one came out too deep
)
SCENE_PARTIAL = Struct(
    "ScenePartial",
    Field("low", "vec3f"),  # of the centroids (an eighth of min + max)
    Field("degenerate", "u32"),
    Field("high", "vec3f"),
    Field("nonfinite", "u32"),
)
BUILD_STATE = Struct(
    "BuildState",
    Field("low", "vec3f"),  # the grid's corner, in eighths of min + max
    Field("normalise", "f32"),  # power of two that takes the grid's extent into [1, 2)
    Field("scale", "f32"),  # grid cells a normalised unit
    Field("kept", "u32"),
    Field("degenerate", "u32"),
    Field("nonfinite", "u32"),
)


def make_parameters(
    count: int,
    grid_bits: int,
    size_bits: int,
    max_depth: int = MAX_DEPTH,
    *,
    level: int = 0,
    attempt: int = 0,
) -> NDArray[Any]:
    """One BUILD_PARAMETERS record."""
    record = np.zeros(1, BUILD_PARAMETERS.dtype)
    record["count"] = count
    record["grid_bits"] = grid_bits
    record["size_bits"] = size_bits
    record["max_depth"] = max_depth
    record["key_words"] = key_words(grid_bits, size_bits)
    record["level"] = level
    record["attempt"] = attempt
    return record


def key_words(grid_bits: int, size_bits: int) -> int:
    """u32 a key; its highest bit stays clear, so that no code looks like a removed triangle's."""
    return 1 if 3 * grid_bits + size_bits <= 31 else 2


def group_count(items: int) -> int:
    """Workgroups of GROUP_SIZE lanes for so many items."""
    return -(-items // GROUP_SIZE)


def wgsl() -> str:
    """The records and constants for shaders."""
    constants = {
        "REMOVED_DEGENERATE": f"f32 = {REMOVED_DEGENERATE}.0",
        "REMOVED_NONFINITE": f"f32 = {REMOVED_NONFINITE}.0",
        "LARGEST": "f32 = 0x1.fffffep+127",
        "LEFT_TURN": f"u32 = {LEFT_TURN}u",
        "STACK_LIMIT": f"u32 = {STACK_LIMIT}u",
        "EMPTY_CHILD": "i32 = i32(-2147483648)",  # bvh.tree.EMPTY
    }
    lines = [f"const {name}: {value};" for name, value in constants.items()]
    records = [r.wgsl() for r in (BUILD_PARAMETERS, SCENE_PARTIAL, BUILD_STATE)]
    return "\n".join(["// Generated from bvh/gpu/build_records.py.", *lines, *records])
