"""SAH of a refitted tree, summed on the GPU from the exact boxes that the refit's pyramid gives.

One dispatch after a refit; the host reads a few hundred bytes whenever it likes, and hands the
number to `bvh.rebuild_policy`. It is `bvh.sah`'s with both costs 1: every box of a block or node
counts once, so the kind of a box does not matter. Float32 in a fixed order: the same tree gives
the same number, on any adapter that does not flush denormals.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.refit import GpuRefit
from bvh.gpu.refit_twins import ordered, run_boxes
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
U32 = NDArray[np.uint32]

GROUPS = 64
GROUP_SIZE = 256
LONGEST_SIDE = np.float32(1e18)


def half_areas(boxes: F32) -> F32:
    """[n] of `[n, 6]` boxes in the shader's order of operations."""
    side = np.minimum(boxes[:, 3:] - boxes[:, :3], LONGEST_SIDE)
    x, y, z = side.T
    return np.asarray((x * y + y * z) + z * x)


def refit_cost(parameters: NDArray[Any], slots: U32, boxes: I32, areas: F32) -> None:
    """Twin of refit_cost.wgsl for GROUPS workgroups."""
    count = int(parameters[0]["slots"])
    _, first, last = slots.reshape(-1, 3)[:count].astype(np.int64).T
    found = run_boxes(boxes, int(parameters[0]["blocks"]), first, last)
    area = half_areas(ordered(found).view(np.float32))
    lanes = GROUPS * GROUP_SIZE
    rounds = np.zeros((-(-count // lanes), lanes), np.float32)
    rounds.reshape(-1)[:count] = area
    by_lane = np.zeros(lanes, np.float32)
    for row in rounds:
        by_lane += row
    sums = by_lane.reshape(GROUPS, GROUP_SIZE)
    width = GROUP_SIZE // 2
    while width:
        sums[:, :width] += sums[:, width : 2 * width]
        width //= 2
    areas[:GROUPS] = sums[:, 0]
    if count:
        areas[GROUPS] = area[0]


def sah_of(areas: F32, boxes: int) -> float:
    """The cost from what the stage wrote, for a tree of so many blocks and nodes. A root without
    area costs as if every box were hit, as in `bvh.sah`."""
    root = float(areas[GROUPS])
    return float(areas[:GROUPS].sum(dtype=np.float64)) / root if root > 0 else float(boxes)


class GpuRefitCost:
    """The SAH of what `refit` did last."""

    def __init__(self, refit: GpuRefit) -> None:
        self.refit = refit
        self.device = refit.device
        self.stage = Stage(
            self.device, "refit/cost", "bvh/gpu/shaders/refit_cost.wgsl", twin=refit_cost
        )
        self.areas = self.device.buffer("refit/areas", 4 * (GROUPS + 1))

    def encode(self, scope: Any) -> None:
        """Within a compute pass, after the refit's own `encode`."""
        resources = {
            "parameters": self.refit.parameters,
            "slots": self.refit.resources["slots"],
            "boxes": self.refit.resources["boxes"],
            "areas": self.areas,
        }
        self.stage.dispatch(scope, resources, GROUPS)

    def read(self) -> float:
        """The SAH, read back; 0 for a tree of no blocks."""
        plan = self.refit.plan
        if not plan.blocks:
            return 0.0
        areas = self.device.read(self.areas, np.float32, count=GROUPS + 1)
        return sah_of(areas, plan.blocks + plan.nodes)
