"""A deforming BLAS built anew on the GPU from its posed vertices, into a place of its own.

The corners of its triangles are gathered from the vertex records; then comes the whole build of
`bvh.gpu.blas_builder` in the same pass, which writes into the scene's buffers. What came of it is
known on the GPU alone until it is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.blas import BuildOptions
from bvh.fan_blocks import fan_table_units
from bvh.gpu.blas_builder import GpuBlasBuilder, refusal
from bvh.gpu.build_capacity import build_capacity
from bvh.gpu.encode import most_units
from bvh.gpu.gather_triangles import GpuGather
from bvh.gpu.trace_rays import scene_has_fans
from bvh.layout import UNIT_BYTES
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device
from engine.scene.records import VERTEX
from passes.opacity import U8, traced

U32 = NDArray[np.uint32]

# References a block that spatial splits may make (see bvh.builders.spatial).
MOST_REFERENCES = 1.3


@dataclass(frozen=True, slots=True)
class Place:
    """Where a container is to stand in the scene's buffers, in bytes: base and room."""

    base: int
    room: int


def room_bytes(triangles: int, options: BuildOptions) -> int:
    """Bytes that no build of so many triangles exceeds."""
    blocks = int(np.ceil(MOST_REFERENCES * triangles)) + 1
    fans = fan_table_units(blocks, blocks // 3) if options.leaf > 2 else 0
    return UNIT_BYTES * (most_units(blocks) + fans)


def rebuild_options(bvh: SceneBvh) -> BuildOptions:
    """The nearest to the scene's own that a GPU builds. Frames have kernels without FP16 nodes or
    fans where the prepared scene has none, so that a tree built later may not have them either."""
    options = replace(bvh.options, pairing="near")
    if not any(stats.nodes_fp16 for stats in bvh.blas_stats):
        options = replace(options, nodes="fp32")
    if refusal(options) or not scene_has_fans(bvh):
        options = replace(options, leaf=min(options.leaf, 2))
    return options


class GpuRebuild:
    """Builds one BLAS of `triangles[g]` `[m, 3]`, the vertex indices of each geometry, with the
    classes `opacity[g]` (`passes.opacity`), at `place`. `buffers` are the scene's: `geometry`
    (vertex record 0 at word `vertex_first`), `bvh` and `parents`. LimitError where the builder's
    own do not fit the adapter."""

    def __init__(
        self,
        device: Device,
        triangles: Sequence[U32],
        opacity: Sequence[U8],
        options: BuildOptions,
        place: Place,
        buffers: Mapping[str, Any],
        vertex_first: int,
    ) -> None:
        geometry, primitive, opaque, kept = traced(opacity)
        self.count = len(primitive)
        builder = GpuBlasBuilder(
            device, build_capacity(self.count), options, output_bytes=UNIT_BYTES
        )
        self.builder = builder
        builder.set_input(geometry, primitive, opaque)
        units = place.base // UNIT_BYTES, place.room // UNIT_BYTES
        builder.set_output(buffers["bvh"], buffers["parents"], *units)
        built = np.concatenate(triangles)[kept]
        self.gather = GpuGather(device, [built], VERTEX.size // 4, vertex_first)
        self._buffers = {
            "positions": buffers["geometry"],
            "triangles": builder.resources["triangles"],
        }

    def encode(self, scope: Any) -> None:
        """Within the compute pass `scope`."""
        self.gather.encode(scope, self._buffers)
        self.builder.encode(scope)

    @property
    def summary(self) -> Any:
        """The buffer of the last build's ENCODE_SUMMARY."""
        return self.builder.encoder.resources["encode_summary"]

    def read_units(self) -> int:
        """Units of the last container; waits. LimitError where it had no room."""
        return int(self.builder.encoder.read_summary()["units"][0])
