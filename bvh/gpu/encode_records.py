"""Records that the stages of the encoder share with the host. A unit is 64 bytes."""

from bvh.header import FAN_VERSION, KIND_BLAS, MAGIC, VERSION
from bvh.layout import ROTATION_NIBBLES
from engine.gpu.structs import Field, Struct

FORMATS = ("fp32", "fp16", "auto")  # of nodes below the root

ENCODE_PARAMETERS = Struct(
    "EncodeParameters",
    Field("base_unit", "u32"),  # where the container starts in the buffer
    Field("capacity_units", "u32"),  # that it may take from there on
    Field("node_format", "u32"),  # index in FORMATS
    Field("geometry_count", "u32"),
    Field("zero", "u32"),  # 0, unknown to the compiler
    Field("pad_0", "u32"),
    Field("pad_1", "u32"),
    Field("pad_2", "u32"),
)
ENCODE_SUMMARY = Struct(
    "EncodeSummary",
    Field("units", "u32"),  # of the whole container, also where it does not fit
    Field("fits", "u32"),  # 0: nothing was written
    Field("leaf_unit", "u32"),  # first unit of the leaves, from the container's start
    Field("nodes", "u32"),
    Field("nodes_fp16", "u32"),
    Field("leaves", "u32"),
    Field("depth", "u32"),
    Field("fans", "u32"),  # of the leaves
)


def wgsl() -> str:
    """The records and constants for shaders."""
    lines = [f"const FORMAT_{name.upper()}: u32 = {i}u;" for i, name in enumerate(FORMATS)]
    lines += [
        f"const HEADER_{name}: u32 = {value}u;"
        for name, value in (
            ("MAGIC", MAGIC),
            ("VERSION", VERSION),
            ("FAN_VERSION", FAN_VERSION),
            ("KIND_BLAS", KIND_BLAS),
        )
    ]
    flags = sum(nibble << 4 * slot for slot, nibble in enumerate(ROTATION_NIBBLES))
    lines.append(f"const ROTATIONS: u32 = {flags}u;")
    records = [record.wgsl() for record in (ENCODE_PARAMETERS, ENCODE_SUMMARY)]
    return "\n".join(["// Generated from bvh/gpu/encode_records.py.", *lines, *records])
