"""Records of a batch of small BLASes, and the limits of one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.layout import ROTATION_NIBBLES
from engine.gpu.structs import Field, Struct

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

SMALL_MESH = Struct(
    "SmallMesh",
    Field("first", "u32"),  # triangle
    Field("count", "u32"),  # of triangles
    Field("first_geometry", "u32"),  # in the batch, whose geometries are numbered through
    Field("geometries", "u32"),
)
SMALL_PARAMETERS = Struct(
    "SmallParameters",
    Field("meshes", "u32"),
    Field("triangles", "u32"),
    Field("base_unit", "u32"),  # of the first container in the scene buffer
    Field("limit_unit", "u32"),  # nothing is written from here on
)


@dataclass(frozen=True, slots=True)
class SmallMesh:
    """What `bvh.build.build_blas` takes: `triangles [m, 3, 3]`, `geometry [m]` into `opaque [g]`,
    `primitive [m]`."""

    triangles: F32
    geometry: U32
    primitive: U32
    opaque: NDArray[np.bool_]
    name: str = ""


@dataclass(frozen=True, slots=True)
class SmallBlasReport:
    """Where each mesh's container went and what it holds."""

    bases: NDArray[np.int64]  # bytes in the scene buffer
    bounds: F32  # [n, 2, 3]; low 1, high -1 where empty
    triangles: NDArray[np.int64]  # kept
    dropped: NDArray[np.int64]
    blocks: NDArray[np.int64]
    end_bytes: int  # of the last container, aligned


def wgsl() -> str:
    """The records and constants for shaders."""
    rotations = int(sum(nibble << 4 * i for i, nibble in enumerate(ROTATION_NIBBLES)))
    lines = [f"const ROTATIONS: u32 = {np.uint32(rotations)}u;"]
    structs = (SMALL_MESH, SMALL_PARAMETERS)
    return "\n".join(
        ["// Generated from bvh/gpu/small_blas_records.py.", *lines, *(s.wgsl() for s in structs)]
    )
