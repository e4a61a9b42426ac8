"""Triangles as a builder takes them, from a buffer of vertices that an earlier stage wrote."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.stage import Stage
from engine.gpu.structs import Field, Struct

U32 = NDArray[np.uint32]

GROUP_SIZE = 256

GATHER_PARAMETERS = Struct(
    "GatherParameters",
    Field("corners", "u32"),  # three a triangle
    Field("vertex_words", "u32"),  # from one vertex's position to the next
    Field("vertex_first", "u32"),  # word of vertex 0's position
    Field("pad", "u32"),
)


def wgsl() -> str:
    """The record for the shader."""
    return GATHER_PARAMETERS.wgsl()


def gather_triangles(
    parameters: NDArray[Any], corner_vertices: U32, positions: U32, triangles: U32
) -> None:
    """Twin of gather_triangles.wgsl; `positions` and `triangles` are words."""
    p = parameters[0]
    count = int(p["corners"])
    at = int(p["vertex_first"]) + int(p["vertex_words"]) * corner_vertices[:count].astype(np.int64)
    triangles[: 3 * count] = positions[at[:, None] + np.arange(3)].reshape(-1)


class GpuGather:
    """Of `triangles[g]` `[m, 3]`, the vertex indices of each geometry, one after the other."""

    def __init__(
        self, device: Device, triangles: Sequence[U32], vertex_words: int, vertex_first: int
    ) -> None:
        corners = np.concatenate([np.asarray(t, np.uint32).reshape(-1) for t in triangles])
        self.record = record = np.zeros(1, GATHER_PARAMETERS.dtype)
        record["corners"] = self.corners = len(corners)
        record["vertex_words"], record["vertex_first"] = vertex_words, vertex_first
        path = "bvh/gpu/shaders/gather_triangles.wgsl"
        self.stage = Stage(device, "gather triangles", path, twin=gather_triangles)
        self.resources = {
            "parameters": device.upload("gather/parameters", record, "UNIFORM|COPY_DST"),
            "corner_vertices": device.upload("gather/corner vertices", corners),
        }

    def encode(self, scope: Any, buffers: dict[str, Any]) -> None:
        """Within the compute pass `scope`: `triangles`, nine words each, from `positions`."""
        groups = -(-self.corners // GROUP_SIZE)
        self.stage.dispatch(scope, {**self.resources, **buffers}, groups)
