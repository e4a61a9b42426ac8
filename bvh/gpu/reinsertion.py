"""Reinsertion on the GPU: improves a binary tree in place, some rounds in one submission.

Source: Meister and Bittner 2018, "Parallel Reinsertion for Bounding Volume Hierarchy
Optimization". A round picks candidates, searches the best place of each, lets moves lock what
they touch, carries the winners out and refits what changed (see `bvh.gpu.reinsertion_search`,
`reinsertion_moves` and `reinsertion_refit`). Rounds end on the GPU, when one gains too little: the
dispatches of later ones then find nothing to do. The summed area never rises.

Results depend on the input alone: candidates and changed nodes lie in an order that scheduling
decides, but locks, bounds and sums do not depend on it.
"""

from typing import Any

from numpy.typing import NDArray

from bvh.gpu.build_records import group_count, sweep_groups
from bvh.gpu.reinsertion_records import (
    PARAMETERS,
    SUM_TILE,
    buffer_bytes,
    make_parameters,
)
from bvh.gpu.reinsertion_stages import END, MARK, MOVE, START, TWINS
from bvh.transforms.reinsertion import ReinsertionConfig, round_parameters
from engine.gpu.device import Device
from engine.gpu.stage import Stage

# The two passes of one shader.
CLAIMS = {"claim_by_gain": {"BY_NODE": False}, "claim_by_node": {"BY_NODE": True}}


class GpuReinsertion:
    """Improves trees of up to `capacity` leaves that lie in a builder's buffers: state, boxes,
    children and bounds. LimitError where a buffer would not fit.

    After `encode` only children and bounds of `tree_buffers` are changed; root and node count
    stay, numbering and depth-first order do not. Trees deeper than `config.max_depth`, and those
    of fewer than four leaves, stay as they are.
    """

    def __init__(
        self, device: Device, capacity: int, config: ReinsertionConfig | None = None
    ) -> None:
        self.device = device
        self.capacity = capacity
        self.config = config or ReinsertionConfig()
        sizes = buffer_bytes(capacity)
        for name, size in sizes.items():
            device.check_binding(f"reinsertion/{name}", size)
        self.resources = {
            name: device.buffer(f"reinsertion/{name}", size) for name, size in sizes.items()
        }
        self._rounds = [
            self._upload(round_parameters(capacity, self.config, number))
            for number in range(self.config.rounds + 1)
        ]
        self._levels = [
            self._upload(make_parameters(nodes=max(capacity - 1, 1), level=level))
            for level in range(self.config.max_depth)
        ]
        self.stages = {
            name: Stage(
                device,
                f"reinsertion/{name}",
                f"bvh/gpu/shaders/reinsertion/{_shader(name)}.wgsl",
                constants=CLAIMS.get(name),
                twin=twin,
            )
            for name, twin in TWINS.items()
        }
        sweep = sweep_groups(device)
        over_all = dict.fromkeys(
            ("links", "weigh", "select", "scatter"), max(group_count(capacity), 1)
        )
        self._groups = {
            **dict.fromkeys(TWINS, sweep),
            **over_all,
            **dict.fromkeys(("choose", "levels", "verdict"), 1),
            "refit": sweep // 8,  # most levels are short, and there are many
            "search": 4 * sweep,  # of 64 lanes
            "sum": -(-max(capacity - 1, 1) // SUM_TILE),
        }

    def _upload(self, record: NDArray[Any]) -> Any:
        buffer = self.device.buffer("reinsertion/parameters", PARAMETERS.size, "UNIFORM|COPY_DST")
        self.device.write(buffer, record)
        return buffer

    def encode(self, scope: Any, tree_buffers: dict[str, Any]) -> None:
        """All rounds, within the pass `scope`, after the build that fills `tree_buffers`."""
        names = ("state", "boxes", "children", "bounds")
        resources = {**self.resources, **{name: tree_buffers[name] for name in names}}
        for number, parameters in enumerate(self._rounds):
            here = {**resources, "parameters": parameters}
            for name in MOVE if number else START:
                self._dispatch(scope, name, here)
            for name in MARK:
                self._dispatch(scope, name, here)
            for level in reversed(self._levels):
                self._dispatch(scope, "refit", {**resources, "parameters": level})
            for name in END:
                self._dispatch(scope, name, here)

    def _dispatch(self, scope: Any, name: str, resources: dict[str, Any]) -> None:
        self.stages[name].dispatch(scope, resources, self._groups[name])


def _shader(stage: str) -> str:
    return "reinsertion_claim" if stage in CLAIMS else f"reinsertion_{stage}"
