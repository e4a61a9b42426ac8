"""The guest layout: every bit that an RDNA2 (RTIP 1.1) BVH consumer reads, written down once.

Owns node pointers, node types, word offsets inside nodes, flag bits, the buffer descriptor and
the `wgsl()` text of the same constants. Does not own the container header (`bvh.container`).
Offsets named `_WORD` are 32-bit words from the node's start, `_BYTES` are bytes.

Evidence labels: documented (vendor manual or register header), observed (public source), inferred,
ours. Sources: GPURT (GPUOpen-Drivers/gpurt, node structs and software emulation), RADV (Mesa,
`src/amd/vulkan/bvh`), PAL and the RDNA3.5 ISA sections 10.9.2-10.9.3 (descriptor), and the
KytyPS5 emitter (node pointers, FP16 and FP32 box nodes, five-vertex triangle blocks).
"""

from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]

UNIT_BYTES = 64  # a node pointer counts in these (observed: KytyPS5, GPURT, RADV)
UNIT_WORDS = 16
HEADER_BYTES = 128  # before the root (observed: GPURT; the header's content is ours)
ROOT_POINTER = 0x15  # byte 128, FP32 box (observed: GPURT)
BASE_ALIGN_BYTES = 256  # the descriptor stores base >> 8 (documented: PAL, RDNA3.5 ISA)

# Node types, bits 2:0 of a pointer (observed: GPURT, RADV).
NODE_TRIANGLE_0 = 0
NODE_TRIANGLE_1 = 1
NODE_TRIANGLE_2 = 2
NODE_TRIANGLE_3 = 3
NODE_BOX_FP16 = 4
NODE_BOX_FP32 = 5
NODE_INSTANCE = 6  # "user" node: its bytes belong to software
NODE_PROCEDURAL = 7  # "user" node: here a sphere (see SPHERE_CENTER_WORD)
NODE_NAMES = (
    "triangle 0",
    "triangle 1",
    "triangle 2",
    "triangle 3",
    "FP16 box",
    "FP32 box",
    "instance",
    "procedural",
)
# Bytes a node of each type occupies (box sizes observed; instance size observed in RADV).
NODE_BYTES = (64, 64, 64, 64, 64, 128, 128, 64)

INVALID_POINTER = 0xFFFFFFFF  # empty child slot (observed: GPURT, RADV)
EMPTY_BOUND_FP32 = 0x7FC00000  # quiet NaN, as RADV fills empty slots: it misses in every model
EMPTY_BOUND_FP16 = 0x7E007E00  # two quiet binary16 NaNs (ours, same reason)

# Box nodes (observed: KytyPS5, GPURT, RADV). Child pointers are words 0..3 of both.
BOX_WIDTH = 4
BOX_BOUNDS_WORD = 4  # child c starts at BOX_BOUNDS_WORD + c * BOX_*_CHILD_WORDS
BOX_FP32_CHILD_WORDS = 6  # min.x min.y min.z max.x max.y max.z
BOX_FP16_CHILD_WORDS = 3  # min.x|min.y<<16, min.z|max.x<<16, max.y|max.z<<16
BOX_FP32_TAIL_WORD = 28  # words 28..31 are not read by the test; written as zero (ours)

# Triangle block (vertices observed everywhere; the tail as GPURT for RTIP 1.1).
TRIANGLE_V0_WORD = 0
TRIANGLE_V1_WORD = 3
TRIANGLE_V2_WORD = 6
TRIANGLE_V3_WORD = 9  # a block of one triangle repeats V2 here (ours: no stray coordinates)
TRIANGLE_GEOMETRY_WORD = 12  # geometry index in bits 23:0, flags above (observed: GPURT)
TRIANGLE_PRIMITIVE_0_WORD = 13  # primitive index of triangle 0 (observed: GPURT)
TRIANGLE_PRIMITIVE_1_WORD = 14  # primitive index of triangle 1; INVALID_POINTER if none (ours)
TRIANGLE_FLAGS_WORD = 15  # one flag byte a type, type k in byte k (observed: GPURT, KytyPS5)
# Vertex slots of each type (observed: KytyPS5, GPURT's compression table). Types 2 and 3 need the
# fifth vertex, where the tail of a block of one or two triangles lives; whether an RDNA2 chip
# tests them is unknown.
TRIANGLE_SLOTS = ((0, 1, 2), (1, 3, 2), (2, 3, 4), (2, 4, 0))
GEOMETRY_INDEX_MASK = 0x00FFFFFF
GEOMETRY_OPAQUE = 0x01000000  # bit 24 (position ours, after GPURT's flags in the top byte)

# Flag byte (observed: GPURT). Original vertices a,b,c sit in slots 3-I-J, I, J; a reported I
# belongs to b and J to c. Bits 4..7 are read by RTIP 2.0 and later only.
FLAG_I_MASK = 0x3
FLAG_J_SHIFT = 2
FLAG_OPAQUE = 0x80
ROTATION_NIBBLES = (0x9, 0x2, 0x4)  # original vertex a sits in slot 0, 1, 2

# Fan block, pointed to by type 2 or 3: three or four triangles about V2 (ours: no public builder
# makes one). The fifth vertex stands in place of the tail, and the flag word's high nibbles, which
# RTIP 1.1 does not read, hold the geometry index (15 bits) and bit 31 the opaque flag.
TRIANGLE_V4_WORD = 12
FAN_GEOMETRY_LIMIT = 1 << 15
FAN_OPAQUE = 0x80000000
# Primitive ids are in a table of the container (ours). First two words for every 32 leaves: which
# of them are fans, and the row of the first of those. Then, at a multiple of a row, the rows: the
# ids of types 0 to 3, INVALID_POINTER for a fourth triangle that is not there. Rows count from the
# table's start, so that a row number is a 16-byte offset.
FAN_GROUP_LEAVES = 32
FAN_GROUP_WORDS = 2
FAN_ROW_WORDS = 4

# Procedural node, type 7, one sphere. Box and tail as GPURT's (observed; RADV has other bytes), the
# sphere between them ours. A ray crosses a sphere twice; the tail words TRIANGLE_* say of entering
# and leaving what they say of a block's two triangles, so both primitive words hold the same id
# (the first is GPURT's reserved word) and both flag bytes ROTATION_NIBBLES[0] (ours).
PROCEDURAL_MIN_WORD = 0
PROCEDURAL_MAX_WORD = 3
SPHERE_CENTER_WORD = 6
SPHERE_RADIUS_WORD = 9
SPHERE_RESERVED_WORD = 10  # two words, 0
SPHERE_FLAGS = 0x0909  # of TRIANGLE_FLAGS_WORD

# Instance node (ours, after RADV's): words.
INSTANCE_BLAS_WORD = 0  # u64, low word first: ((blas base + 128) >> 3) | 5, in the scene buffer
INSTANCE_CUSTOM_WORD = 2  # custom index in bits 23:0, mask in bits 31:24
INSTANCE_OBJECT_WORD = 3  # first object (SBT offset) in bits 23:0, flags in bits 31:28
INSTANCE_WORLD_TO_OBJECT_WORD = 4  # 3x4 row-major float32
INSTANCE_ID_WORD = 16  # index of the instance in the TLAS build input
INSTANCE_BLAS_BASE_WORD = 17  # BLAS base in 64-byte units within the scene buffer
INSTANCE_GEOMETRY_COUNT_WORD = 18
INSTANCE_RESERVED_WORD = 19
INSTANCE_OBJECT_TO_WORLD_WORD = 20  # 3x4 row-major float32
INSTANCE_INDEX_MASK = 0x00FFFFFF
INSTANCE_MASK_SHIFT = 24
# Flag bits of INSTANCE_OBJECT_WORD (observed: RADV). The second one is stored inverted, so that
# one comparison decides opacity.
INSTANCE_FORCE_OPAQUE = 0x80000000
INSTANCE_NO_FORCE_NON_OPAQUE = 0x40000000
INSTANCE_DISABLE_FACING_CULL = 0x20000000
INSTANCE_FLIP_FACING = 0x10000000

# Descriptor fields (documented: PAL, RDNA3.5 ISA).
DESCRIPTOR_TYPE = 8
DEFAULT_GROWTH = 6  # ULPs added to a box's exit; GPURT's default, growth 0 loses edge hits


class InstanceFlags(IntFlag):
    """What an instance changes for the geometry below it.

    Precedence, from strongest to weakest: the ray's opacity flags, the instance's, the geometry's
    own opaque bit. With both of the instance's opacity flags set, FORCE_NON_OPAQUE wins, as in
    RADV's comparison. DISABLE_FACING_CULL overrides a ray's culling and makes FLIP_FACING moot;
    FLIP_FACING exchanges front and back. Facing is that of the object-space winding: a mirrored
    transform does not flip it.
    """

    NONE = 0
    FORCE_OPAQUE = 1
    FORCE_NON_OPAQUE = 2
    DISABLE_FACING_CULL = 4
    FLIP_FACING = 8


def pack_pointer(byte_offset: Any, kind: Any) -> Any:
    """Node pointer of a node at `byte_offset` (64-byte aligned). Ints or integer arrays;
    arrays give uint32, which holds offsets below 32 GiB."""
    if isinstance(byte_offset, np.ndarray) or isinstance(kind, np.ndarray):
        offset = np.asarray(byte_offset, np.int64)
        return ((offset >> 3) | np.asarray(kind, np.int64)).astype(np.uint32)
    if byte_offset % UNIT_BYTES or not 0 <= kind <= 7:
        raise ValueError(f"no node pointer for byte {byte_offset}, type {kind}")
    return (int(byte_offset) >> 3) | int(kind)


def unpack_pointer(pointer: Any) -> tuple[Any, Any]:
    """(byte offset from the container's base, node type). Ints or integer arrays (int64 out)."""
    if isinstance(pointer, np.ndarray):
        wide = pointer.astype(np.int64)
        return (wide & ~np.int64(7)) << 3, wide & 7
    return (int(pointer) & ~7) << 3, int(pointer) & 7


def pack_instance_flags(flags: InstanceFlags | int) -> int:
    """Bits 31:28 of INSTANCE_OBJECT_WORD."""
    flags = InstanceFlags(flags)
    word = 0
    if flags & InstanceFlags.FORCE_OPAQUE:
        word |= INSTANCE_FORCE_OPAQUE
    if not flags & InstanceFlags.FORCE_NON_OPAQUE:
        word |= INSTANCE_NO_FORCE_NON_OPAQUE
    if flags & InstanceFlags.DISABLE_FACING_CULL:
        word |= INSTANCE_DISABLE_FACING_CULL
    if flags & InstanceFlags.FLIP_FACING:
        word |= INSTANCE_FLIP_FACING
    return word


def unpack_instance_flags(word: int) -> InstanceFlags:
    """The inverse of `pack_instance_flags`; lower bits of `word` are ignored."""
    flags = InstanceFlags.NONE
    if word & INSTANCE_FORCE_OPAQUE:
        flags |= InstanceFlags.FORCE_OPAQUE
    if not word & INSTANCE_NO_FORCE_NON_OPAQUE:
        flags |= InstanceFlags.FORCE_NON_OPAQUE
    if word & INSTANCE_DISABLE_FACING_CULL:
        flags |= InstanceFlags.DISABLE_FACING_CULL
    if word & INSTANCE_FLIP_FACING:
        flags |= InstanceFlags.FLIP_FACING
    return flags


def triangle_flag_byte(i_source: int, j_source: int, opaque: bool = False) -> int:
    """One byte of TRIANGLE_FLAGS_WORD."""
    return i_source | j_source << FLAG_J_SHIFT | (FLAG_OPAQUE if opaque else 0)


def pack_fan_geometry(geometry: Any, opaque: Any) -> Any:
    """The bits of a fan's flag word that say its geometry; uint32 arrays or ints below
    FAN_GEOMETRY_LIMIT."""
    nibbles = [((geometry >> 4 * k) & 0xF) << 8 * k + 4 for k in range(4)]
    return nibbles[0] | nibbles[1] | nibbles[2] | nibbles[3] | opaque * FAN_OPAQUE


def unpack_fan_geometry(flags: Any) -> Any:
    """A fan's geometry word, as TRIANGLE_GEOMETRY_WORD of other blocks has it; uint32 arrays."""
    index = (flags >> 4) & 0xF | (flags >> 8) & 0xF0 | (flags >> 12) & 0xF00
    index = index | (flags >> 16) & 0x7000
    return index | (flags >> 31) * GEOMETRY_OPAQUE


def pack_descriptor(
    base_bytes: int,
    last_unit: int,
    *,
    growth: int = DEFAULT_GROWTH,
    sort: bool = True,
    return_mode: int = 1,
) -> tuple[int, int, int, int]:
    """The four descriptor words. `last_unit` is the size minus one in 64-byte units, `growth` in
    ULPs (0..255); return mode 1 reports barycentric numerators, 0 a triangle id."""
    if base_bytes % BASE_ALIGN_BYTES:
        raise ValueError(f"descriptor base {base_bytes} is no multiple of {BASE_ALIGN_BYTES}")
    if not 0 <= growth <= 255 or not 0 <= last_unit < 1 << 42:
        raise ValueError(f"descriptor growth {growth} or size {last_unit} out of range")
    base = base_bytes >> 8
    return (
        base & 0xFFFFFFFF,
        (base >> 32) & 0xFF | growth << 23 | int(sort) << 31,
        last_unit & 0xFFFFFFFF,
        last_unit >> 32 | return_mode << 24 | DESCRIPTOR_TYPE << 28,
    )


def round_half_outward(minimum: F32, maximum: F32) -> tuple[NDArray[Any], NDArray[Any]]:
    """binary16 bit patterns (uint16) of float32 bounds, min rounded toward -inf and max toward
    +inf, any shape. Values beyond 65504 become infinite on the outer side (inferred)."""
    return _round_half(minimum, -1), _round_half(maximum, 1)


def _round_half(values: F32, side: int) -> NDArray[np.uint16]:
    wide = np.asarray(values, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        half = wide.astype(np.float16)
        # Round to nearest, then one step outward where that landed inside (ledger section 10).
        inside = half.astype(np.float32) > wide if side < 0 else half.astype(np.float32) < wide
    bits = half.view(np.uint16)
    negative = (bits & 0x8000) != 0
    zero = (bits & 0x7FFF) == 0
    away = negative == (side < 0)  # the step raises the magnitude
    stepped = np.where(away, bits + np.uint16(1), bits - np.uint16(1))
    smallest = np.uint16(0x8001 if side < 0 else 0x0001)
    stepped = np.where(zero, smallest, stepped)
    return np.asarray(np.where(inside, stepped, bits), np.uint16)


def pack_half_bounds(minimum: F32, maximum: F32) -> U32:
    """Three words a box, `[..., 3]` uint32, from `[..., 3]` float32 bounds, rounded outward."""
    low, high = round_half_outward(minimum, maximum)
    lo, hi = low.astype(np.uint32), high.astype(np.uint32)
    shift = np.uint32(16)
    return np.stack(
        [
            lo[..., 0] | lo[..., 1] << shift,
            lo[..., 2] | hi[..., 0] << shift,
            hi[..., 1] | hi[..., 2] << shift,
        ],
        axis=-1,
    )


def unpack_half_bounds(words: U32) -> tuple[F32, F32]:
    """Exact float32 (min, max), each `[..., 3]`, of `[..., 3]` packed words."""
    halves = np.ascontiguousarray(words, "<u4").view("<f2").astype(np.float32)
    return halves[..., :3], halves[..., 3:]


def wgsl() -> str:
    """Every integer constant of this module as a WGSL `const` of type u32."""
    lines = ["// Generated from bvh/layout.py."]
    for name, value in globals().items():
        if name.isupper() and isinstance(value, int) and not name.startswith("_"):
            text = f"0x{value:08x}u" if value > 255 else f"{value}u"
            lines.append(f"const {name}: u32 = {text};")
    return "\n".join(lines) + "\n"
