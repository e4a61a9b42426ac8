"""Refit on the GPU: new vertex positions into the guest bytes of a built BLAS, in place.

One dispatch rewrites every triangle block and stores its exact box; then one dispatch a height
joins the boxes of children and writes the node, FP32 or FP16 (rounded outward from the exact
boxes, so that rounding does not add up towards the root); the heights that TOP_NODES nodes or
fewer are left for share the last dispatch, a single workgroup that keeps their boxes in its own
memory. The header's bounds follow; pointers, formats, ids, flags and parent links stay. So
positions that did not change give the bytes that were there.

A block with a NaN or infinite corner is counted, and those of its triangles that use the corner
become a miss: it moves onto V2, which all of them have; where V2 itself is lost, all corners move
to where it was. So every box stays finite and around what can be hit. A bound of an FP16
node beyond 65504 is counted and becomes infinite on the outer side: slower, never wrong.

All arithmetic is on integers, so that every adapter and the twins (`bvh.gpu.refit_twins`) give the
same bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bvh.gpu.refit_plan import RefitPlan
from bvh.gpu.refit_records import FOUND_NONFINITE, FOUND_OVERFLOW, REFIT_PARAMETERS
from bvh.gpu.refit_twins import make_parameters, refit_blocks, refit_nodes
from bvh.layout import BASE_ALIGN_BYTES
from engine.gpu.device import Device
from engine.gpu.stage import Stage

GROUP_SIZE = 256


class GpuRefit:
    """Refits one BLAS in a buffer that may hold others before and behind it. LimitError where a
    table would not fit the adapter; ValueError for a base that is no multiple of 256."""

    def __init__(
        self,
        device: Device,
        plan: RefitPlan,
        *,
        base_bytes: int = 0,
        vertex_words: int = 3,
        vertex_first: int = 0,
    ) -> None:
        self.device = device
        self.plan = plan
        self.vertex_words = vertex_words
        self.vertex_first = vertex_first
        self.blocks = Stage(
            device, "refit/blocks", "bvh/gpu/shaders/refit_blocks.wgsl", twin=refit_blocks
        )
        self.nodes = Stage(
            device, "refit/nodes", "bvh/gpu/shaders/refit_nodes.wgsl", twin=refit_nodes
        )
        self.resources = {
            "block_vertices": device.upload("refit/block vertices", plan.block_vertices),
            "node_units": device.upload("refit/node units", plan.node_units),
            "node_children": device.upload("refit/node children", plan.node_children),
            "height_starts": device.upload("refit/height starts", plan.height_starts),
            "boxes": device.buffer("refit/boxes", 24 * (plan.blocks + plan.nodes)),
            "counts": device.buffer("refit/counts", 16),
        }
        self._parameters = [
            device.buffer("refit/parameters", REFIT_PARAMETERS.size, "UNIFORM|COPY_DST")
            for _ in range(plan.top_height + 1)
        ]
        self.place(base_bytes)

    @property
    def parameters(self) -> Any:
        """The record of the first dispatch, which says how much there is."""
        return self._parameters[0]

    def place(self, base_bytes: int) -> None:
        """Where the container starts in its buffer from now on."""
        if base_bytes % BASE_ALIGN_BYTES or base_bytes < 0:
            raise ValueError(f"base {base_bytes} is no multiple of {BASE_ALIGN_BYTES}")
        records = make_parameters(self.plan, base_bytes, self.vertex_words, self.vertex_first)
        for buffer, record in zip(self._parameters, records, strict=True):
            self.device.write(buffer, record)

    def phases(self, buffers: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """What `encode` encodes, in order; each into a compute pass that it is given."""
        resources = {
            **self.resources,
            "words": buffers["words"],
            "positions": buffers["positions"],
            "parameters": self._parameters[0],
        }
        return {
            "blocks": lambda scope: self.blocks.dispatch(
                scope, resources, -(-self.plan.blocks // GROUP_SIZE)
            ),
            "nodes": lambda scope: self._encode_nodes(scope, resources),
        }

    def _encode_nodes(self, scope: Any, resources: dict[str, Any]) -> None:
        sizes = np.diff(self.plan.height_starts.astype(np.int64))
        for height, parameters in enumerate(self._parameters):
            last = height + 1 == len(self._parameters)
            groups = 1 if last else -(-int(sizes[height]) // GROUP_SIZE)
            self.nodes.dispatch(scope, {**resources, "parameters": parameters}, groups)

    def encode(self, scope: Any, buffers: dict[str, Any]) -> None:
        """Within the compute pass `scope`: `words` (the guest bytes) from `positions`, float32
        x y z every `vertex_words` words from `vertex_first` on."""
        for encode_phase in self.phases(buffers).values():
            encode_phase(scope)

    def counts(self) -> tuple[int, int]:
        """Of the last refit, read back: blocks with a corner that is not finite, and children's
        boxes beyond binary16's range."""
        found = self.device.read(self.resources["counts"], count=4)
        return int(found[FOUND_NONFINITE]), int(found[FOUND_OVERFLOW])
