"""The 128-byte header in front of every root. Ours; `bvh.container` has the byte table.

Sizes are in 64-byte units, so that a 32-bit field covers all that a node pointer can address.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.layout import HEADER_BYTES, ROOT_POINTER, UNIT_BYTES, pack_descriptor
from engine.gpu.structs import Field, Struct

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]

MAGIC = 0x48564254  # "TBVH" in memory
VERSION = 1  # of containers of triangles without fans and of instances, and of files
FAN_VERSION = 2  # of containers that have fans
SPHERE_VERSION = 3  # of containers of spheres
KIND_BLAS = 0
KIND_TLAS = 1

HEADER = Struct(
    "ContainerHeader",
    Field("magic", "u32"),
    Field("version", "u32"),
    Field("kind", "u32"),  # KIND_BLAS, KIND_TLAS
    Field("root_pointer", "u32"),
    Field("size_units", "u32"),  # whole container, header included
    Field("leaf_unit", "u32"),  # first unit of the leaf section
    Field("nodes_fp32", "u32"),  # the root included
    Field("nodes_fp16", "u32"),
    Field("leaf_count", "u32"),  # triangle blocks, spheres or instance nodes
    Field("primitive_count", "u32"),  # triangles, repeated ones once; spheres; or instances
    Field("geometry_count", "u32"),  # 0 in a TLAS
    Field("depth", "u32"),  # levels of box nodes, 1 = the root alone
    Field("bounds_min", "f32", 3),  # NaN when empty
    Field("bounds_max", "f32", 3),
    Field("fan_unit", "u32"),  # first unit of the fan table, 0 without fans
    Field("fan_count", "u32"),
    Field("descriptor", "u32", 4),
    Field("sphere_count", "u32"),  # all leaves of a container of spheres, else 0
    Field("reserved_1", "u32", 7),
)
assert HEADER.size == HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Header:
    """A container's header. `bounds` is `[2, 3]` min, max in the container's own space (min +inf,
    max -inf when empty); `base_bytes` is where the descriptor says the container starts."""

    kind: int
    size_units: int
    leaf_unit: int
    nodes_fp32: int
    nodes_fp16: int
    leaf_count: int
    primitive_count: int
    geometry_count: int
    depth: int
    bounds: F32
    base_bytes: int = 0
    fan_unit: int = 0
    fan_count: int = 0
    sphere_count: int = 0

    @property
    def size_bytes(self) -> int:
        return self.size_units * UNIT_BYTES


def pack_header(header: Header) -> U32:
    """[32] words."""
    record = np.zeros(1, HEADER.dtype)
    record["magic"] = MAGIC
    record["version"] = _version(header.fan_unit, header.sphere_count)
    record["root_pointer"] = ROOT_POINTER
    for name in (
        "kind",
        "size_units",
        "leaf_unit",
        "nodes_fp32",
        "nodes_fp16",
        "leaf_count",
        "primitive_count",
        "geometry_count",
        "depth",
        "fan_unit",
        "fan_count",
        "sphere_count",
    ):
        record[name] = getattr(header, name)
    empty = bool((header.bounds[0] > header.bounds[1]).any())
    record["bounds_min"] = np.nan if empty else header.bounds[0]
    record["bounds_max"] = np.nan if empty else header.bounds[1]
    record["descriptor"] = pack_descriptor(header.base_bytes, header.size_units - 1)
    return record.view(np.uint32)


def _version(fan_unit: int, sphere_count: int) -> int:
    if sphere_count:
        return SPHERE_VERSION
    return FAN_VERSION if fan_unit else VERSION


def unpack_header(words: U32) -> Header:
    """The header at the start of `words`; ValueError when this is no container of ours."""
    if len(words) < HEADER_BYTES // 4:
        raise ValueError(f"{4 * len(words)} bytes cannot hold a {HEADER_BYTES}-byte header")
    record = np.ascontiguousarray(words[: HEADER_BYTES // 4]).view(HEADER.dtype)[0]
    if int(record["magic"]) != MAGIC:
        raise ValueError(f"magic 0x{int(record['magic']):08x}, expected 0x{MAGIC:08x}")
    version, fan_unit = int(record["version"]), int(record["fan_unit"])
    sphere_count = int(record["sphere_count"])
    if version not in (VERSION, FAN_VERSION, SPHERE_VERSION):
        raise ValueError(
            f"container version {version}, this reads {VERSION}, with fans {FAN_VERSION} and of "
            f"spheres {SPHERE_VERSION}"
        )
    if version != SPHERE_VERSION and (version == FAN_VERSION) != bool(fan_unit):
        raise ValueError(f"container version {version} with its fan table at unit {fan_unit}")
    if version != _version(fan_unit, sphere_count) or (fan_unit and sphere_count):
        raise ValueError(f"container version {version} with {sphere_count} spheres")
    if int(record["root_pointer"]) != ROOT_POINTER:
        raise ValueError(f"root pointer 0x{int(record['root_pointer']):x}, not 0x15")
    bounds = np.stack([record["bounds_min"], record["bounds_max"]])
    if np.isnan(bounds).any():
        bounds = np.array([[np.inf] * 3, [-np.inf] * 3], np.float32)
    descriptor = [int(word) for word in record["descriptor"]]
    return Header(
        kind=int(record["kind"]),
        size_units=int(record["size_units"]),
        leaf_unit=int(record["leaf_unit"]),
        nodes_fp32=int(record["nodes_fp32"]),
        nodes_fp16=int(record["nodes_fp16"]),
        leaf_count=int(record["leaf_count"]),
        primitive_count=int(record["primitive_count"]),
        geometry_count=int(record["geometry_count"]),
        depth=int(record["depth"]),
        bounds=bounds,
        base_bytes=(descriptor[0] | (descriptor[1] & 0xFF) << 32) << 8,
        fan_unit=fan_unit,
        fan_count=int(record["fan_count"]),
        sphere_count=sphere_count,
    )
