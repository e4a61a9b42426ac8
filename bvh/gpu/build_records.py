"""Records that the stages of a build share with the host, and their buffer conventions.

Boxes are six float32 each (min x y z, max x y z), as in `bvh.tree.Bounds`. `boxes` holds the
tree's primitives in [0, kept), nothing taken out in between; `kept` is only known on the GPU, the
host knows a bound on it. A triangle that set-up takes out leaves an inverted box in
`triangle_boxes`: min 1, max `-reason`. Keys are one or two u32 (low word first).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.tree import MAX_DEPTH, STACK_LIMIT, Bounds
from engine.gpu.device import Device
from engine.gpu.structs import Field, Struct

U32 = NDArray[np.uint32]

TILE = 2048  # boxes a workgroup of the scene box
GROUP_SIZE = 256  # items a workgroup of every other stage
REMOVED_DEGENERATE = 1
REMOVED_NONFINITE = 2
# Stands for infinity, which WGSL does not promise to handle.
LARGEST = np.finfo(np.float32).max

BUILD_PARAMETERS = Struct(
    "BuildParameters",
    Field("count", "u32"),  # triangles given, or a bound on the boxes kept
    Field("key_words", "u32"),  # 1 or 2
    Field("grid_bits", "u32"),  # of a code, an axis
    Field("max_depth", "u32"),  # levels of inner nodes
    Field("level", "u32"),  # the first of a pyramid dispatch
    Field("zero", "u32"),  # 0, unknown to the compiler
    Field("size_bits", "u32"),  # of a code
    Field("attempt", "u32"),  # 1: the hierarchy again, if the first one came out too deep
)
SCENE_PARTIAL = Struct(
    "ScenePartial",
    Field("low", "vec3f"),  # of the centroids (an eighth of min + max)
    Field("reserved_0", "u32"),
    Field("high", "vec3f"),
    Field("reserved_1", "u32"),
)
BUILD_STATE = Struct(
    "BuildState",
    Field("kept", "u32"),  # the tree's primitives, the first word: a count for scans and sorts
    Field("triangles", "u32"),  # usable ones; the same as `kept` for a build over boxes
    Field("degenerate", "u32"),
    Field("nonfinite", "u32"),
    Field("low", "vec3f"),  # the grid's corner, in eighths of min + max
    Field("normalise", "f32"),  # power of two that takes the grid's extent into [1, 2)
    Field("scale", "f32"),  # grid cells a normalised unit
    Field("reserved", "u32", 3),
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


def sweep_groups(device: Device) -> int:
    """Workgroups of a kernel that strides over a range which only the GPU knows: enough to fill
    the adapter, few enough that a short range costs little."""
    return 64 if device.info.is_cpu else 1024


def box_buffers(device: Device, capacity: int) -> dict[str, Any]:
    """Empty `state` and `boxes` for up to `capacity` boxes: what a builder starts from."""
    return {
        "state": device.buffer("state", BUILD_STATE.size),
        "boxes": device.buffer("boxes", 24 * capacity),
    }


def write_boxes(device: Device, buffers: dict[str, Any], bounds: Bounds) -> None:
    """Finite boxes `[n, 2, 3]` into buffers from `box_buffers`."""
    state = np.zeros(1, BUILD_STATE.dtype)
    state["kept"] = state["triangles"] = len(bounds)
    device.write(buffers["state"], state)
    device.write(buffers["boxes"], np.asarray(bounds, np.float32))


def wgsl() -> str:
    """The records and constants for shaders."""
    constants = {
        "REMOVED_DEGENERATE": f"f32 = {REMOVED_DEGENERATE}.0",
        "REMOVED_NONFINITE": f"f32 = {REMOVED_NONFINITE}.0",
        "LARGEST": "f32 = 0x1.fffffep+127",
        "STACK_LIMIT": f"u32 = {STACK_LIMIT}u",
        "EMPTY_CHILD": "i32 = i32(-2147483648)",  # bvh.tree.EMPTY
    }
    lines = [f"const {name}: {value};" for name, value in constants.items()]
    records = [r.wgsl() for r in (BUILD_PARAMETERS, SCENE_PARTIAL, BUILD_STATE)]
    return "\n".join(["// Generated from bvh/gpu/build_records.py.", *lines, *records])
