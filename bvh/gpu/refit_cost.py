"""SAH of a refitted tree, summed on the GPU from the exact boxes that the refit left behind: every
block and every node but the root is in one child slot, whose box the pyramid gives.

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
from bvh.layout import BOX_WIDTH
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


def refit_cost(parameters: NDArray[Any], slot_runs: U32, boxes: I32, areas: F32) -> None:
    """Twin of refit_cost.wgsl for GROUPS workgroups."""
    blocks, nodes = int(parameters[0]["blocks"]), int(parameters[0]["nodes"])
    runs = slot_runs.reshape(-1, 2)[: BOX_WIDTH * nodes].astype(np.int64)
    count = len(runs)
    runs = np.concatenate([runs, [[0, blocks - 1]]])
    area = np.zeros(len(runs), np.float32)
    used = (runs[:, 0] <= runs[:, 1]) & (blocks > 0)
    found = ordered(run_boxes(boxes, blocks, *runs[used].T)) if blocks else boxes[:0]
    area[used] = half_areas(found.view(np.float32).reshape(-1, 6))
    lanes = GROUPS * GROUP_SIZE
    rounds = np.zeros((-(-count // lanes), lanes), np.float32)
    rounds.reshape(-1)[:count] = area[:-1]
    by_lane = np.zeros(lanes, np.float32)
    for row in rounds:
        by_lane += row
    sums = by_lane.reshape(GROUPS, GROUP_SIZE)
    width = GROUP_SIZE // 2
    while width:
        sums[:, :width] += sums[:, width : 2 * width]
        width //= 2
    areas[:GROUPS] = sums[:, 0]
    areas[GROUPS] = area[-1]


def sah_of(areas: F32, boxes: int) -> float:
    """The cost from what the stage wrote, for a tree of so many blocks and nodes. A root without
    area costs as if every box were hit, as in `bvh.sah`."""
    root = float(areas[GROUPS])
    return float(areas.sum(dtype=np.float64)) / root if root > 0 else float(boxes)


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
            "slot_runs": self.refit.resources["slot_runs"],
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
