"""Spatial splits on the CPU, made of the stages' twins."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.binned_sah_records import NODE, NODE_BIN_WORDS, TILE_RECORD, WORK_WORDS
from bvh.gpu.binned_sah_stages import sah_bin
from bvh.gpu.spatial_cuts import spatial_bin, spatial_object, spatial_plane
from bvh.gpu.spatial_records import (
    CORNER_WORDS,
    CORNERS,
    CUT,
    PARAMETERS,
    SPACE_WORDS,
    STATE,
    TILE_SUMS,
    most_nodes,
    most_tiles,
)
from bvh.gpu.spatial_stages import (
    spatial_clear,
    spatial_extents,
    spatial_finish,
    spatial_list,
    spatial_move,
    spatial_sides,
    spatial_start,
)
from bvh.tree import Bounds
from engine.gpu.twin import call_twin

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

TWINS: dict[str, Callable[..., None]] = {
    "spatial_clear": spatial_clear,
    "spatial_start": spatial_start,
    "spatial_extents": spatial_extents,
    "sah_bin": sah_bin,
    "spatial_object": spatial_object,
    "spatial_bin": spatial_bin,
    "spatial_plane": spatial_plane,
    "spatial_sides": spatial_sides,
    "spatial_list": spatial_list,
    "spatial_move": spatial_move,
    "spatial_finish": spatial_finish,
}
LEVEL_STAGES = (
    "spatial_extents",
    "sah_bin",
    "spatial_object",
    "spatial_bin",
    "spatial_plane",
    "spatial_sides",
    "spatial_list",
    "spatial_move",
)


def budget_share(budget: float) -> int:
    """256ths of the blocks that may be added as references, for a share `budget`, rounded down."""
    return int(256 * budget)


def most_references(blocks: int, share: int) -> int:
    """References of so many blocks, at most."""
    return blocks + blocks * share // 256


def pack_corners(corners: F32) -> F32:
    """Corners `[n, up to 5, 3]` of blocks as the stages read them: five each, the last repeated."""
    count, given = corners.shape[:2]
    out = np.zeros((count, CORNER_WORDS), np.float32)
    for k in range(CORNERS):
        out[:, 3 * k : 3 * k + 3] = corners[:, min(k, given - 1)]
    return out.reshape(-1)


def make_parameters(level: int, share: int) -> NDArray[Any]:
    record = np.zeros(1, PARAMETERS.dtype)
    record["level"], record["budget_share"] = level, share
    return record


def buffer_sizes(blocks: int, share: int) -> dict[str, int]:
    """Bytes of every buffer that the stages own; lists and work records are there twice."""
    capacity = most_references(blocks, share)
    nodes, tiles = most_nodes(capacity), most_tiles(capacity)
    sizes = {
        "split_state": STATE.size,
        "extents": 24 * nodes,
        "bins": 4 * NODE_BIN_WORDS * nodes,
        "space": 4 * SPACE_WORDS * nodes,
        "cuts": CUT.size * nodes,
        "sums": TILE_SUMS.size * tiles,
        "done": 4 * WORK_WORDS * capacity,
        "split_boxes": 24 * capacity,
        "split_blocks": 8 * capacity,
    }
    for parity in (0, 1):
        sizes[f"nodes_{parity}"] = NODE.size * (nodes + 1)
        sizes[f"tiles_{parity}"] = TILE_RECORD.size * tiles
        sizes[f"work_{parity}"] = 4 * WORK_WORDS * capacity
    return sizes


def level_names(buffers: dict[str, Any], level: int) -> dict[str, Any]:
    """`buffers` with the names of a level's stages for what exists twice."""
    named = dict(buffers)
    for name in ("nodes", "tiles", "work"):
        named[name] = buffers[f"{name}_{level % 2}"]
        named[f"next_{name}"] = buffers[f"{name}_{1 - level % 2}"]
    return named


def make_arrays(corners: F32, bounds: Bounds, share: int) -> dict[str, Any]:
    """The stages' buffers as NumPy arrays, with blocks `[n]` put in."""
    records = {
        "split_state": STATE,
        "cuts": CUT,
        "sums": TILE_SUMS,
        "nodes_0": NODE,
        "nodes_1": NODE,
        "tiles_0": TILE_RECORD,
        "tiles_1": TILE_RECORD,
    }
    arrays: dict[str, Any] = {}
    for name, size in buffer_sizes(max(len(bounds), 1), share).items():
        if name in records:
            arrays[name] = np.zeros(size // records[name].size, records[name].dtype)
        else:
            arrays[name] = np.zeros(size // 4, np.float32 if name == "split_boxes" else np.uint32)
    arrays["state"] = np.array([len(bounds)], np.uint32)
    arrays["new_state"] = np.zeros(1, np.uint32)
    arrays["boxes"] = np.ascontiguousarray(bounds, np.float32).reshape(-1)
    arrays["corners"] = corners
    arrays["blocks"] = np.repeat(np.arange(len(bounds), dtype=np.uint32), 2)
    return arrays


def split_by_twins(corners: F32, bounds: Bounds, share: int, levels: int) -> tuple[I64, Bounds]:
    """(block [m], box [m, 2, 3]) of every reference to blocks of `corners` (`pack_corners`)."""
    arrays = make_arrays(corners, bounds, share)
    for level in range(max(levels, 1)):
        named = level_names(arrays, level)
        named["parameters"] = make_parameters(level, share)
        for name in ("spatial_clear", "spatial_start") if level == 0 else ():
            call_twin(TWINS[name], named)
        for name in LEVEL_STAGES if levels else ():
            call_twin(TWINS[name], named)
    named = level_names(arrays, levels)
    named["parameters"] = make_parameters(0, share)
    call_twin(TWINS["spatial_finish"], named)
    total = int(arrays["new_state"][0])
    blocks = arrays["split_blocks"][: 2 * total : 2].astype(np.int64)
    return blocks, arrays["split_boxes"][: 6 * total].reshape(total, 2, 3)
