"""Records of the TLAS built on the GPU: what a frame gives, and what became of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.header import Header, unpack_header
from bvh.layout import UNIT_BYTES
from bvh.scene_bvh import SceneBvh
from bvh.tlas import BvhInstance
from engine.gpu.structs import Field, Struct

# Why an instance gets no node. What the host's builder refuses with an error, a frame on the GPU
# can only leave out, count and name.
REMOVED = (
    "",
    "its BLAS is empty",
    "transform is not finite",
    "singular transform",
    "no such BLAS",
    "reaches beyond float32's range (3e38) in world space",
)
EMPTY_BLAS, NONFINITE, SINGULAR, UNKNOWN_BLAS, BEYOND = range(1, 6)
NONE = 0xFFFFFFFF

INSTANCE_RECORD = Struct(
    "InstanceRecord",
    Field("row_0", "vec4f"),  # object to world
    Field("row_1", "vec4f"),
    Field("row_2", "vec4f"),
    Field("blas", "u32"),
    Field("mask", "u32"),  # 8 bits of it count
    Field("first_object", "u32"),  # 24 bits of it count
    Field("custom_index", "u32"),  # 24 bits of it count
    Field("flags", "u32"),  # InstanceFlags
    Field("reserved", "u32", 3),
)
BLAS_RECORD = Struct(
    "BlasRecord",
    Field("low", "vec3f"),  # object space; low > high when empty
    Field("base_unit", "u32"),  # container in the scene buffer, in 64-byte units
    Field("high", "vec3f"),
    Field("geometry_count", "u32"),
)
# An instance after set-up, in the order given.
PLACED_INSTANCE = Struct(
    "PlacedInstance",
    Field("node", "u32", 32),  # its guest bytes
    Field("low", "f32", 3),  # world space
    Field("high", "f32", 3),
    Field("removed", "u32"),  # why, 0 if kept
    Field("reserved", "u32"),
)
# What a workgroup of set-up found: 256 instances.
INSTANCE_GROUP = Struct(
    "InstanceGroup",
    Field("low", "vec3f"),  # of the centroids (an eighth of min + max) of those kept
    Field("kept", "u32"),
    Field("high", "vec3f"),
    Field("reserved", "u32"),
)
TLAS_REPORT = Struct(
    "TlasReport",
    Field("counts", "u32", len(REMOVED)),  # by reason; of those kept at 0
    Field("first", "u32", len(REMOVED)),  # lowest instance of each, NONE where there is none
)
TLAS_PARAMETERS = Struct(
    "TlasParameters",
    Field("bound", "u32"),  # on the instances given
    Field("blas_count", "u32"),
    Field("segments", "u32"),
    Field("zero", "u32"),  # 0, unknown to the compiler
)


@dataclass(frozen=True, slots=True)
class TlasReport:
    """What became of a frame's instances. `removed` counts by reason (`REMOVED`, EMPTY_BLAS apart
    from errors), `first` names the lowest instance of each."""

    kept: int
    bytes: int
    removed: dict[str, int]
    first: dict[str, int]

    @property
    def messages(self) -> list[str]:
        """One line a reason that is a fault of the instances given."""
        return [
            f"instance {self.first[reason]}: {reason}"
            + (f" (and {count - 1} more)" if count > 1 else "")
            for reason, count in self.removed.items()
            if count and reason != REMOVED[EMPTY_BLAS]
        ]


def pack_instance_records(instances: Sequence[BvhInstance]) -> NDArray[Any]:
    """[n] INSTANCE_RECORD of instances with any values at all (`bvh.tlas` checks them)."""
    out = np.zeros(len(instances), INSTANCE_RECORD.dtype)
    if not len(out):
        return out
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.stack([x.transform[:3] for x in instances]).astype(np.float32)
    for i in range(3):
        out[f"row_{i}"] = rows[:, i]
    for name in ("blas", "mask", "first_object", "custom_index", "flags"):
        out[name] = [int(getattr(x, name)) for x in instances]
    return out


def scene_blas_records(bvh: SceneBvh) -> NDArray[Any]:
    """[n] BLAS_RECORD of the BLASes of an assembled scene, by their headers."""
    headers = [unpack_header(bvh.words[int(base) // 4 :]) for base in bvh.blas_bases]
    return blas_records(headers, bvh.blas_bases)


def blas_records(headers: Sequence[Header], bases: Iterable[int]) -> NDArray[Any]:
    """[n] BLAS_RECORD of BLASes at byte offsets `bases` of the scene buffer."""
    out = np.zeros(len(headers), BLAS_RECORD.dtype)
    for row, header, base in zip(out, headers, bases, strict=True):
        row["low"], row["high"] = header.bounds if header.leaf_count else ([1.0] * 3, [-1.0] * 3)
        row["base_unit"] = int(base) // UNIT_BYTES
        row["geometry_count"] = header.geometry_count
    return out


def wgsl() -> str:
    """The records and constants for shaders."""
    names = ("EMPTY_BLAS", "NONFINITE", "SINGULAR", "UNKNOWN_BLAS", "BEYOND")
    lines = [f"const {name}: u32 = {globals()[name]}u;" for name in names]
    lines += [f"const REASONS: u32 = {len(REMOVED)}u;", f"const NONE: u32 = {NONE}u;"]
    structs = (INSTANCE_RECORD, BLAS_RECORD, PLACED_INSTANCE, INSTANCE_GROUP, TLAS_PARAMETERS)
    return "\n".join(
        ["// Generated from bvh/gpu/tlas_records.py.", *lines, *(s.wgsl() for s in structs)]
    )
