"""One deforming BLAS of a scene through its frames: refitted where it lies, or built anew behind
the scene's BLASes, refitted there, and put back to where it was.

A refit needs a plan made from the bytes of the tree (`bvh.gpu.refit_plan`). After a build on the
GPU these are read back, once, when the first refit is asked for: that waits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.blas import BuildOptions
from bvh.build_defaults import LEAF_SIZES
from bvh.gpu.encode import no_room
from bvh.gpu.encode_records import ENCODE_SUMMARY
from bvh.gpu.refit import GpuRefit
from bvh.gpu.refit_cost import GROUPS, GpuRefitCost, sah_of
from bvh.gpu.refit_plan import block_vertices, make_plan
from bvh.layout import UNIT_BYTES, UNIT_WORDS
from engine.gpu.device import Device
from engine.gpu.errors import LimitError, UserError
from engine.scene.records import VERTEX
from passes.opacity import U8
from passes.rebuilding import GpuRebuild, Place

U32 = NDArray[np.uint32]
COST_BYTES = 4 * (GROUPS + 1)


class DeformingTree:
    """BLAS number `number`, known as `name`, of `triangles[g]` `[m, 3]` (vertex indices of each
    geometry) with the classes `opacity[g]`, built anew by `options`. `buffers` are the scene's,
    `refit` that of the tree as prepared, `place` where it may be built anew (None: nowhere),
    `alike` as for `bvh.gpu.refit_plan.block_vertices`."""

    def __init__(
        self,
        device: Device,
        name: str,
        number: int,
        triangles: Sequence[U32],
        opacity: Sequence[U8],
        options: BuildOptions,
        buffers: Mapping[str, Any],
        refit: GpuRefit,
        prepared_base: int,
        place: Place | None,
        alike: U32,
    ) -> None:
        self.device, self.number, self.name = device, number, name
        self.refits_since_build = 0
        self.builds = 0
        self.base = self.prepared_base = prepared_base
        self._triangles, self._opacity, self._options = triangles, opacity, options
        self._buffers, self._place, self._alike = buffers, place, alike
        self._prepared_refit = refit
        self._refit: GpuRefit | None = refit
        self._cost: GpuRefitCost | None = None
        self._rebuild: GpuRebuild | None = None
        self._leaf = max(LEAF_SIZES)

    @property
    def end(self) -> int:
        """The byte behind all that the tree may take where it is."""
        built = self._place if self._place and self.base == self._place.base else None
        return built.base + built.room if built else self.base

    @property
    def refitted(self) -> bool:
        """Whether the tree has followed its vertices since it was built."""
        return self._refit is not None and self.refits_since_build > 0

    def can_refit(self) -> bool:
        """Whether the tree can follow its vertices; where it was built on the GPU this reads it.
        Where a block joins corners that part, the next build has blocks of one triangle."""
        if self._refit is None:
            assert self._rebuild is not None
            count = UNIT_WORDS * self._rebuild.read_units()
            words = self.device.read(self._buffers["bvh"], offset=self.base, count=count)
            try:
                vertices = block_vertices(words, self._triangles, self._alike)
            except UserError:
                self._leaf, self._rebuild = 1, None
                return False
            self._refit = GpuRefit(
                self.device,
                make_plan(words, vertices),
                base_bytes=self.base,
                vertex_words=VERTEX.size // 4,
                vertex_first=self._prepared_refit.vertex_first,
            )
        return True

    def begin_build(self) -> None:
        """From now on the tree is the one that `encode_build` builds. LimitError where there is no
        room for it."""
        if self._place is None:
            raise LimitError(
                f"{self.name}: no room to build it anew in the scene's buffer on this adapter; "
                "refit it (update 'refit')"
            )
        if self._rebuild is None:
            self._rebuild = GpuRebuild(
                self.device,
                self._triangles,
                self._opacity,
                replace(self._options, leaf=min(self._options.leaf, self._leaf)),
                self._place,
                self._buffers,
                self._prepared_refit.vertex_first,
            )
        self.base = self._place.base
        self._refit = self._cost = None

    def encode_build(self, scope: Any) -> None:
        """The build, within a compute pass after the skinning."""
        assert self._rebuild is not None
        self._rebuild.encode(scope)
        self.refits_since_build = 0
        self.builds += 1

    def encode_refit(self, scope: Any, measured: bool) -> None:
        """The refit, and the sums that its SAH comes from if it is to be `measured`."""
        assert self._refit is not None
        buffers = {"words": self._buffers["bvh"], "positions": self._buffers["geometry"]}
        self._refit.encode(scope, buffers)
        self.refits_since_build += 1
        if measured:
            self.encode_cost(scope)

    def encode_cost(self, scope: Any) -> None:
        """The sums that the SAH of the last refit comes from."""
        assert self._refit is not None
        self._cost = self._cost or GpuRefitCost(self._refit)
        self._cost.encode(scope)

    @property
    def cost_sums(self) -> Any | None:
        """The buffer of COST_BYTES that `encode_cost` wrote since the last build, if any."""
        return self._cost.areas if self._cost else None

    def sah(self, sums: bytes) -> float:
        """From the bytes of `cost_sums`."""
        assert self._refit is not None
        plan = self._refit.plan
        return sah_of(np.frombuffer(sums, np.float32), plan.blocks + plan.nodes)

    def put_back(self) -> None:
        """The tree is the prepared one, whose bytes the caller writes."""
        self.base, self._refit, self._cost = self.prepared_base, self._prepared_refit, None
        self.refits_since_build = 0

    @property
    def build_summary(self) -> Any | None:
        """The buffer of the ENCODE_SUMMARY of the build that the tree is from; None: the prepared
        one is there."""
        built = self._rebuild is not None and self.base != self.prepared_base
        return self._rebuild.summary if self._rebuild and built else None

    def no_room(self, summary: Any = None) -> str | None:
        """One line where the build that `summary` is of (None: the last one, which waits) did not
        fit its place, and wrote nothing."""
        buffer = self.build_summary
        if summary is None and buffer is not None:
            summary = self.device.read(buffer, ENCODE_SUMMARY.dtype, count=1)[0]
        if summary is None or summary["fits"] or self._place is None:
            return None
        return f"{self.name}: {no_room(summary, self._place.room // UNIT_BYTES)}"

    def faults(self) -> tuple[int, int]:
        """Of the last refit: blocks with a corner that is not finite, and boxes beyond binary16's
        range. Waits; (0, 0) after a build."""
        return self._refit.counts() if self._refit else (0, 0)
