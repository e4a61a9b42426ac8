"""Records and constants of the binned SAH build (`bvh.gpu.binned_sah`), shared with its shaders.

Coordinates are `ordered` u32 here: patterns of float32 whose unsigned order is the numbers' order,
so that bounds are exact under atomics, on any driver, whatever it does to denormals or to -0. Work
records are eight u32 a primitive: ordered min x y z, ordered max x y z, primitive, bins (five bits
an axis). Element 0 of a node list is its header: `first` nodes, `count` tiles.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.tree import EMPTY
from engine.gpu.structs import Field, Struct

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]

BINS = 32  # an axis
BIN_WORDS = 7  # ordered min, ordered max, primitives
NODE_BIN_WORDS = 3 * BINS * BIN_WORDS
SWEEP = 128  # primitives of a node that one workgroup finishes, with all below it
TILE = 1024  # primitives of one node that a workgroup bins or moves at a time
HALVED = 3  # the axis of a node that is cut in the middle of its order
NO_SLOT = 0xFFFFFFFF
WORK_WORDS = 8

PARAMETERS = Struct(
    "SahParameters",
    Field("level", "u32"),  # of this dispatch, the root's is 0
    Field("levels", "u32"),  # that are dispatched
    Field("max_depth", "u32"),  # levels of inner nodes
    Field("zero", "u32"),  # 0, unknown to the compiler
)
NODE = Struct(
    "SahNode",
    Field("first", "u32"),  # primitive, in the build's order
    Field("count", "u32"),
    Field("id", "u32"),  # inner node of the tree: its rank in depth-first order
    Field("first_tile", "u32"),
)
SPLIT = Struct(
    "SahSplit",
    Field("axis", "u32"),  # 0..2, or HALVED
    Field("last_bin", "u32"),  # that goes left
    Field("left_count", "u32"),
    Field("left_slot", "u32"),  # in the next level's list, or NO_SLOT
    Field("right_slot", "u32"),
)
TILE_RECORD = Struct(
    "SahTile",
    Field("node", "u32"),  # slot in the level's list
    Field("lefts", "u32"),  # primitives that go left: of this tile, then of all tiles before it
)
HEAD = Struct(
    "SahHead",  # at the first primitive of a node that is left to the sweep
    Field("count", "u32"),  # 0: no node begins here
    Field("depth", "u32"),  # 1 = the root; its parity says which work buffer holds the node
    Field("id", "u32"),
)


def most_nodes(capacity: int) -> int:
    """Nodes of more than SWEEP primitives that a level may have, at least one."""
    return max(1, capacity // (SWEEP + 1))


def most_tiles(capacity: int) -> int:
    return capacity // TILE + most_nodes(capacity) + 1


def level_count(capacity: int, free_levels: int, max_depth: int) -> int:
    """Levels that are dispatched: as many as halving needs to come down to SWEEP, and
    `free_levels` that SAH may use as it likes; none where the sweep does it all."""
    needed = max(0, -(-capacity // SWEEP) - 1).bit_length()
    return min(needed + free_levels, max_depth) if needed else 0


def ordered(value: F32) -> U32:
    """u32 in the order of the floats (-0 before +0)."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
    return np.where(bits >> 31, ~bits, bits | np.uint32(0x80000000))


def value_of(code: U32) -> F32:
    """The float32 that `ordered` made `code` of."""
    bits = np.where(code >> 31, code & np.uint32(0x7FFFFFFF), ~code)
    return np.ascontiguousarray(bits, np.uint32).view(np.float32)


def centres(work: U32) -> F32:
    """[n, 3] an eighth of min + max of work records `[n, 8]`."""
    eighth = np.float32(0.125)
    return np.asarray(value_of(work[:, :3]) * eighth + value_of(work[:, 3:6]) * eighth)


def area_scale(low: U32, high: U32) -> F32:
    """Power of two that takes a box's longest side into [1, 2), so that no area overflows; 0 for
    a box without sides. `low`, `high` are ordered, `[..., 3]`."""
    quarter = np.float32(0.25)
    side = (value_of(high) * quarter - value_of(low) * quarter).max(axis=-1)
    exponent = np.ascontiguousarray(side).view(np.uint32) >> 23 & 0xFF
    scale = np.clip(252 - exponent.astype(np.int64), 1, 253).astype(np.uint32) << np.uint32(23)
    return np.where(exponent == 0, np.float32(0), scale.view(np.float32))


def scaled_area(low: U32, high: U32, scale: F32) -> F32:
    """Half the area of boxes with sides times `scale` (one a box)."""
    side = value_of(high) * scale[..., None] - value_of(low) * scale[..., None]
    x, y, z = side[..., 0], side[..., 1], side[..., 2]
    return np.asarray(x * y + y * z + z * x)


def most_below(depth: I64 | int, max_depth: int) -> Any:
    """Primitives that a child of a node at `depth` (1 = the root) may hold."""
    return np.int64(1) << np.minimum(np.maximum(max_depth - np.asarray(depth), 0), 30)


def kept_count(state: NDArray[Any]) -> int:
    """The first word of a build's state."""
    return int(np.ascontiguousarray(state).view(np.uint32).reshape(-1)[0])


def wgsl() -> str:
    """The records and constants for shaders."""
    constants = {
        "BINS": f"u32 = {BINS}u",
        "BIN_WORDS": f"u32 = {BIN_WORDS}u",
        "NODE_BIN_WORDS": f"u32 = {NODE_BIN_WORDS}u",
        "SWEEP": f"u32 = {SWEEP}u",
        "SAH_TILE": f"u32 = {TILE}u",
        "HALVED": f"u32 = {HALVED}u",
        "NO_SLOT": f"u32 = 0x{NO_SLOT:x}u",
        "EMPTY_CHILD": f"i32 = i32({int(EMPTY)})",
    }
    lines = [f"const {name}: {value};" for name, value in constants.items()]
    records = [r.wgsl() for r in (PARAMETERS, NODE, SPLIT, TILE_RECORD, HEAD)]
    return "\n".join(["// Generated from bvh/gpu/binned_sah_records.py.", *lines, *records])
