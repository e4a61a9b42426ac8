"""Spatial splits on the GPU: blocks to references, ahead of any builder, in one compute pass.

See `bvh.gpu.spatial_stages`. What comes out has the form of what went in, a state with a count,
boxes and blocks, and so goes to any builder and to the encoder: a block that was cut is there once
for each of its references. `bvh.builders.spatial` is the same on the CPU, by the stages' twins.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import BUILD_STATE, sweep_groups
from bvh.gpu.pair_records import CORNER_SHIFT, NONE, TRIANGLE_MASK
from bvh.gpu.spatial_records import CORNER_WORDS, level_count
from bvh.gpu.spatial_twins import (
    LEVEL_STAGES,
    TWINS,
    budget_share,
    buffer_sizes,
    level_names,
    make_parameters,
    most_references,
)
from engine.gpu.device import Device
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


def spatial_corners(state: NDArray[Any], blocks: U32, triangles: F32, corners: F32) -> None:
    """Twin of spatial_corners.wgsl: blocks of one or two triangles, as `bvh.gpu.pairing` makes
    them."""
    kept = int(np.ascontiguousarray(state).view(np.uint32).reshape(-1)[0])
    pair = blocks[: 2 * kept].reshape(kept, 2).astype(np.int64)
    points = triangles.reshape(-1, 3, 3)
    turn = pair[:, 0] >> CORNER_SHIFT
    single = pair[:, 1] == NONE
    out = corners[: CORNER_WORDS * kept].reshape(kept, CORNER_WORDS)
    for k in range(3):
        out[:, 3 * k : 3 * k + 3] = points[pair[:, 0] & TRIANGLE_MASK, (turn + k) % 3]
    second = np.where(single, pair[:, 0], pair[:, 1]) & TRIANGLE_MASK
    corner = np.where(single, (turn + 2) % 3, pair[:, 1] >> CORNER_SHIFT)
    out[:, 9:12] = out[:, 12:15] = points[second, corner]
    out[:, 15] = 0


class GpuSpatialSplits:
    """Splits up to `capacity` blocks of one or two triangles. `buffers` has `state`, `boxes` and
    `blocks` of the references; their number is at most `most_references`. LimitError where a
    buffer would not fit one binding."""

    def __init__(self, device: Device, capacity: int, config: Any) -> None:
        self.device = device
        self.share = budget_share(config.budget)
        self.levels = level_count(capacity, config.split_levels)
        self.most_references = most_references(capacity, self.share)
        sizes = {
            **buffer_sizes(capacity, self.share),
            "corners": 4 * CORNER_WORDS * capacity,
            "new_state": BUILD_STATE.size,
        }
        for name, size in sizes.items():
            device.check_binding(f"spatial/{name}", size)
        self._own = {name: device.buffer(f"spatial/{name}", size) for name, size in sizes.items()}
        self._parameters = [
            device.upload(
                "spatial/parameters", make_parameters(level, self.share), "UNIFORM|COPY_DST"
            )
            for level in range(max(self.levels, 1))
        ]
        twins: dict[str, Callable[..., None]] = {**TWINS, "spatial_corners": spatial_corners}
        self.stages = {
            name: Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
            for name, twin in twins.items()
        }

    def encode(self, scope: Any, inputs: dict[str, Any]) -> None:
        """Splits the blocks of `inputs` (`state`, `boxes`, `blocks`, `triangles`)."""
        groups = sweep_groups(self.device)
        resources = {**self._own, **inputs}
        self.stages["spatial_corners"].dispatch(scope, resources, groups)
        for level in range(max(self.levels, 1)):
            named = level_names(resources, level)
            named["parameters"] = self._parameters[level]
            for name in ("spatial_clear", "spatial_start") if level == 0 else ():
                self.stages[name].dispatch(scope, named, groups)
            for name in LEVEL_STAGES if self.levels else ():
                self.stages[name].dispatch(scope, named, 1 if name == "spatial_list" else groups)
        named = level_names(resources, self.levels)
        named["parameters"] = self._parameters[0]
        self.stages["spatial_finish"].dispatch(scope, named, groups)

    @property
    def buffers(self) -> dict[str, Any]:
        return {
            "state": self._own["new_state"],
            "boxes": self._own["split_boxes"],
            "blocks": self._own["split_blocks"],
        }
