"""Morton order of a few thousand instances in two dispatches: tiles, then every item's place.

A workgroup makes and sorts the keys of SEGMENT instances, over the grid that follows from what
set-up found of every 256; then each item looks up, by binary search, how many
keys of every other tile come before its own. That is one load a step, eight searches at a time,
and grows with the number of tiles: up to MOST_TILES of them it takes less than the passes of a
radix sort, whose dispatches are twelve. Codes and order are those of `bvh.gpu.sorted_boxes`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import (
    LARGEST,
    SCENE_PARTIAL,
    group_count,
    make_parameters,
)
from bvh.gpu.cluster_records import SEGMENT, lanes_slot
from bvh.gpu.morton import morton
from bvh.gpu.scene_box import grid
from engine.gpu.device import Device
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Records = NDArray[Any]

MOST_TILES = 32
# Codes of one word, which sort in half the time.
GRID_BITS, SIZE_BITS = 9, 4
_PAST_END = 0xFFFFFFFF  # no key: codes leave the highest bit clear


def tile_sort(
    parameters: Records,
    state: Records,
    boxes: F32,
    summaries: Records,
    tile_keys: U32,
    tile_items: U32,
) -> None:
    """Twin of tile_sort.wgsl: all tiles of the buffers, those past what is kept too."""
    kept, tiles = int(state["kept"][0]), len(tile_keys) // SEGMENT
    mine = summaries[: group_count(int(parameters["bound"][0]))]
    box = np.zeros(1, SCENE_PARTIAL.dtype)
    box["low"] = mine["low"].min(axis=0, initial=LARGEST)
    box["high"] = mine["high"].max(axis=0, initial=-LARGEST)
    codes, here = make_parameters(1, GRID_BITS, SIZE_BITS), state.copy()
    grid(codes, box, here, np.zeros(1, np.uint32))
    padded = np.full(tiles * SEGMENT, _PAST_END, np.uint32)
    morton(codes, here, boxes, padded, np.zeros(kept, np.uint32))
    rows = padded.reshape(tiles, SEGMENT)
    order = np.argsort(rows, axis=1, kind="stable")
    tile_keys[: tiles * SEGMENT] = np.take_along_axis(rows, order, axis=1).reshape(-1)
    first = SEGMENT * np.arange(tiles)[:, None]
    tile_items[: tiles * SEGMENT] = (first + order).reshape(-1)


def tile_merge(state: Records, tile_keys: U32, tile_items: U32, order: U32) -> None:
    """Twin of tile_merge.wgsl."""
    kept = int(state["kept"][0])
    by_key = np.argsort(tile_keys[:kept], kind="stable")
    order[:kept] = tile_items[:kept][by_key]


TWINS: dict[str, Callable[..., None]] = {"tile_sort": tile_sort, "tile_merge": tile_merge}


class TileSort:
    """Sorts up to `capacity` instances, at most MOST_TILES of SEGMENT."""

    def __init__(self, device: Device, capacity: int) -> None:
        tiles = -(-capacity // SEGMENT)
        if tiles > MOST_TILES:
            raise ValueError(
                f"{capacity:,} instances, a sort by tiles takes {MOST_TILES * SEGMENT:,}"
            )
        size = 4 * SEGMENT * max(1, tiles)
        self.resources = {
            name: device.buffer(f"tile sort/{name}", size) for name in ("tile_keys", "tile_items")
        }
        self.stages = {
            name: Stage(
                device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin, slots=lanes_slot(device)
            )
            for name, twin in TWINS.items()
        }

    def encode(self, scope: Any, count: int, inputs: dict[str, Any]) -> None:
        """Within the pass `scope`: `order` of the `boxes` that `state` says there are, `count` at
        most, from set-up's `parameters` and `summaries`."""
        mine = {**self.resources, **inputs}
        self.stages["tile_sort"].dispatch(scope, mine, -(-count // SEGMENT))
        self.stages["tile_merge"].dispatch(scope, mine, group_count(count))


def wgsl() -> str:
    """The constants for shaders."""
    return f"const GRID_BITS: u32 = {GRID_BITS}u;\nconst SIZE_BITS: u32 = {SIZE_BITS}u;"
