"""Records of a batch of small BLASes, and the limits of one."""

import numpy as np

from bvh.layout import ROTATION_NIBBLES
from engine.gpu.structs import Field, Struct

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


def wgsl() -> str:
    """The records and constants for shaders."""
    rotations = int(sum(nibble << 4 * i for i, nibble in enumerate(ROTATION_NIBBLES)))
    lines = [f"const ROTATIONS: u32 = {np.uint32(rotations)}u;"]
    structs = (SMALL_MESH, SMALL_PARAMETERS)
    return "\n".join(
        ["// Generated from bvh/gpu/small_blas_records.py.", *lines, *(s.wgsl() for s in structs)]
    )
