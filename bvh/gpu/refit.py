"""Refit on the GPU: new vertex positions into the guest bytes of a built BLAS, in place.

Blocks lie in depth-first order, so what is below a child is a run of blocks, and its box comes from
a pyramid over the blocks' boxes rather than from the nodes below: no dispatch a level of the tree,
and no node waits for another. A box of the pyramid joins four of the level below. The first
dispatch rewrites every triangle block and stores its exact box; each of the next ones makes five
levels of the pyramid; the last one has a lane for every child slot, which takes at most eight boxes
a level and writes the child's box into its node, FP32 or FP16 (rounded outward from the exact box,
so that rounding does not add up towards the root).
The header's bounds follow; pointers, formats, ids, flags and parent links stay. So positions that
did not change give the bytes that were there.

A block with a NaN or infinite corner is counted, and those of its triangles that use the corner
become a miss: it moves onto V2, which all of them have; where V2 itself is lost, all corners move
to where it was. So every box stays finite and around what can be hit. A bound of an FP16
node beyond 65504 is counted and becomes infinite on the outer side: slower, never wrong.

All arithmetic is on integers, so that every adapter and the twins (`bvh.gpu.refit_twins`) give the
same bits.
"""

from collections.abc import Callable
from typing import Any

from bvh.gpu.refit_plan import RefitPlan
from bvh.gpu.refit_records import (
    FOUND_NONFINITE,
    FOUND_OVERFLOW,
    REFIT_PARAMETERS,
    pyramid_levels,
    pyramid_sizes,
)
from bvh.gpu.refit_twins import make_parameters, refit_blocks, refit_nodes, refit_pyramid
from bvh.layout import BASE_ALIGN_BYTES
from engine.gpu.device import Device
from engine.gpu.stage import Stage

GROUP_SIZE = 256
TILE = 1024  # boxes a workgroup of the pyramid


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
        self.pyramid = Stage(
            device, "refit/pyramid", "bvh/gpu/shaders/refit_pyramid.wgsl", twin=refit_pyramid
        )
        self.nodes = Stage(
            device, "refit/nodes", "bvh/gpu/shaders/refit_nodes.wgsl", twin=refit_nodes
        )
        self.resources = {
            "block_vertices": device.upload("refit/block vertices", plan.block_vertices),
            "slots": device.upload("refit/slots", plan.slots),
            "boxes": device.buffer("refit/boxes", 24 * sum(pyramid_sizes(plan.blocks))),
            "counts": device.buffer("refit/counts", 16),
        }
        self._parameters = [
            device.buffer("refit/parameters", REFIT_PARAMETERS.size, "UNIFORM|COPY_DST")
            for _ in (0, *pyramid_levels(plan.blocks))
        ]
        self.place(base_bytes)

    @property
    def parameters(self) -> Any:
        """The record that says how much there is."""
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
        blocks = -(-self.plan.blocks // GROUP_SIZE)
        slots = -(-len(self.plan.slots) // GROUP_SIZE)
        return {
            "blocks": lambda scope: self.blocks.dispatch(scope, resources, blocks),
            "pyramid": lambda scope: self._encode_pyramid(scope, resources),
            "nodes": lambda scope: self.nodes.dispatch(scope, resources, slots),
        }

    def _encode_pyramid(self, scope: Any, resources: dict[str, Any]) -> None:
        sizes = pyramid_sizes(self.plan.blocks)
        levels = pyramid_levels(self.plan.blocks)
        for level, parameters in zip(levels, self._parameters[1:], strict=True):
            # Of a small tree nothing is left to join: the one group hands on the counts.
            groups = max(1, -(-sizes[level] // TILE)) if level < len(sizes) else 1
            self.pyramid.dispatch(scope, {**resources, "parameters": parameters}, groups)

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
