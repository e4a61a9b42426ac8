"""Binned SAH on the GPU, breadth first: boxes to a binary tree, all in one compute pass.

While nodes hold more than SWEEP primitives, five dispatches a level (`bvh.gpu.binned_sah_stages`);
then one dispatch makes every subtree that is left (`bvh.gpu.binned_sah_sweep`). The number of
levels is fixed by the capacity: nodes that SAH would leave too large for it are cut into halves, so
that geometry of any kind ends within `max_depth` levels. Nothing is read back and nothing is
sorted. Inner nodes come out in depth-first order.

`bvh.builders.binned_sah` is the build on the CPU: the same heuristic with its own bins and sweep,
so the two trees differ. `build_by_twins` is this build made of the stages' twins.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.builders.binned_sah import BinnedSahConfig
from bvh.gpu.binned_sah_records import (
    HEAD,
    NODE,
    NODE_BIN_WORDS,
    PARAMETERS,
    SPLIT,
    SWEEP,
    TILE_RECORD,
    WORK_WORDS,
    level_count,
    most_nodes,
    most_tiles,
)
from bvh.gpu.binned_sah_stages import (
    sah_bin,
    sah_choose,
    sah_clear,
    sah_count,
    sah_list,
    sah_move,
    sah_start,
)
from bvh.gpu.binned_sah_sweep import sah_sweep
from bvh.gpu.build_records import sweep_groups
from bvh.gpu.tree_builder import TreeBuilder
from bvh.tree import Bounds, Tree, empty_bounds
from engine.gpu.device import Device
from engine.gpu.stage import Stage
from engine.gpu.twin import call_twin

TWINS: dict[str, Callable[..., None]] = {
    "sah_clear": sah_clear,
    "sah_start": sah_start,
    "sah_bin": sah_bin,
    "sah_choose": sah_choose,
    "sah_count": sah_count,
    "sah_list": sah_list,
    "sah_move": sah_move,
    "sah_sweep": sah_sweep,
}
LEVEL_STAGES = ("sah_bin", "sah_choose", "sah_count", "sah_list", "sah_move")


def buffer_sizes(capacity: int) -> dict[str, int]:
    """Bytes of every buffer besides the tree's. Lists and work records are there twice: a level
    reads one of each and writes the other."""
    nodes, tiles = most_nodes(capacity), most_tiles(capacity)
    sizes = {
        "bins": 4 * NODE_BIN_WORDS * nodes,
        "splits": SPLIT.size * nodes,
        "heads": HEAD.size * capacity,
    }
    for parity in (0, 1):
        sizes[f"nodes_{parity}"] = NODE.size * (nodes + 1)
        sizes[f"tiles_{parity}"] = TILE_RECORD.size * tiles
        sizes[f"extents_{parity}"] = 24 * nodes
        sizes[f"work_{parity}"] = 4 * WORK_WORDS * capacity
    return sizes


def level_names(buffers: dict[str, Any], level: int) -> dict[str, Any]:
    """`buffers` with the names of a level's stages for what exists twice."""
    here, there = level % 2, 1 - level % 2
    named = dict(buffers)
    for name in ("nodes", "tiles", "extents", "work"):
        named[name] = buffers[f"{name}_{here}"]
        named[f"next_{name}"] = buffers[f"{name}_{there}"]
    named["other_work"] = named["next_work"]
    return named


def make_parameters(level: int, levels: int, max_depth: int) -> NDArray[Any]:
    record = np.zeros(1, PARAMETERS.dtype)
    record["level"], record["levels"], record["max_depth"] = level, levels, max_depth
    return record


class GpuBinnedSah(TreeBuilder):
    """Builds over up to `capacity` boxes. LimitError where a buffer would not fit one binding."""

    def __init__(
        self, device: Device, capacity: int, config: BinnedSahConfig | None = None
    ) -> None:
        self.config = config or BinnedSahConfig()
        self.levels = level_count(capacity, self.config.free_levels, self.config.max_depth)
        super().__init__(device, capacity, "sah", buffer_sizes(capacity))
        self._parameters = [
            device.upload(
                "sah/parameters",
                make_parameters(level, self.levels, self.config.max_depth),
                "UNIFORM|COPY_DST",
            )
            for level in range(max(self.levels, 1))
        ]
        self.stages = {
            name: Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
            for name, twin in TWINS.items()
        }

    def own_phases(self) -> dict[str, Callable[[Any], None]]:
        return {"start": self._start, "levels": self._all_levels, "sweep": self._sweep}

    def _named(self, level: int) -> dict[str, Any]:
        named = level_names({**self.resources, **self.inputs}, level)
        named["parameters"] = self._parameters[level]
        return named

    def _start(self, scope: Any) -> None:
        named, groups = self._named(0), sweep_groups(self.device)
        self.stages["sah_clear"].dispatch(scope, named, groups)
        self.stages["sah_start"].dispatch(scope, named, groups)

    def _all_levels(self, scope: Any) -> None:
        groups = sweep_groups(self.device)
        for level in range(self.levels):
            named = self._named(level)
            for name in LEVEL_STAGES:
                self.stages[name].dispatch(scope, named, 1 if name == "sah_list" else groups)

    def _sweep(self, scope: Any) -> None:
        self.stages["sah_sweep"].dispatch(scope, self._named(0), -(-self.capacity // SWEEP))


def build_by_twins(bounds: Bounds, config: BinnedSahConfig, capacity: int = 0) -> Tree:
    """The tree that `GpuBinnedSah` of that capacity (the number of boxes by default) makes of
    finite boxes `[n, 2, 3]`."""
    count = len(bounds)
    capacity = max(capacity, count, 1)
    levels = level_count(capacity, config.free_levels, config.max_depth)
    arrays = make_arrays(bounds, capacity)
    for level in range(max(levels, 1)):
        named = level_names(arrays, level)
        named["parameters"] = make_parameters(level, levels, config.max_depth)
        if level == 0:
            run_twin("sah_clear", named)
            run_twin("sah_start", named)
        for name in LEVEL_STAGES if levels else ():
            run_twin(name, named)
    named = level_names(arrays, 0)
    named["parameters"] = make_parameters(0, levels, config.max_depth)
    run_twin("sah_sweep", named)
    nodes = max(count - 1, 1)
    return Tree(
        arrays["children"][: 2 * nodes].reshape(-1, 2),
        arrays["bounds"][: 6 * nodes].reshape(-1, 2, 3) if count else empty_bounds(1),
    )


def make_arrays(bounds: Bounds, capacity: int) -> dict[str, Any]:
    """The build's buffers as NumPy arrays, with `bounds` put in."""
    records = {"splits": SPLIT, "heads": HEAD, "nodes": NODE, "tiles": TILE_RECORD}
    arrays: dict[str, Any] = {}
    for name, size in buffer_sizes(capacity).items():
        record = records.get(name.split("_")[0])
        if record:
            arrays[name] = np.zeros(size // record.size, record.dtype)
        else:
            arrays[name] = np.zeros(size // 4, np.uint32)
    nodes = max(capacity - 1, 1)
    arrays["children"], arrays["bounds"] = np.zeros(2 * nodes, np.int32), np.zeros(6 * nodes, "f4")
    arrays["state"] = np.array([len(bounds)], np.uint32)
    arrays["boxes"] = np.ascontiguousarray(bounds, np.float32).reshape(-1)
    return arrays


def run_twin(name: str, arrays: dict[str, Any]) -> None:
    """One stage on the CPU."""
    call_twin(TWINS[name], arrays)
