"""The four descriptor words (T#) of the instruction, field by field.

Bits 127:0, word 0 first. Documented in the PAL register header and the RDNA3.5 ISA; RDNA2's own
manual text was not read, so fields that later generations moved are kept as "other" bits. Words
round-trip: what is not a field stays in `other`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.contract.pointer import GuestAddress
from bvh.layout import BASE_ALIGN_BYTES, DESCRIPTOR_TYPE, UNIT_BYTES
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

BASE_SHIFT = 8  # the field holds base / 256


@dataclass(frozen=True, slots=True)
class Field:
    """Bits [low + width - 1 : low] of the 128."""

    name: str
    low: int
    width: int

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1


FIELDS = (
    Field("base", 0, 40),
    Field("growth", 55, 8),
    Field("sort", 63, 1),
    Field("last_unit", 64, 42),
    Field("return_mode", 120, 1),
    Field("llc_policy", 121, 2),
    Field("big_page", 123, 1),
    Field("type", 124, 4),
)
_FIELD = {field.name: field for field in FIELDS}
_KNOWN = sum(field.mask << field.low for field in FIELDS)


@dataclass(frozen=True, slots=True)
class Descriptor:
    """`base` in bytes; `last_unit` the index of the last readable 64-byte block; `growth` in ULPs;
    `return_mode` 1 reports barycentric numerators, 0 a triangle id. `other` holds the 128-bit
    pattern's bits that no field names, in place."""

    base: GuestAddress
    last_unit: int
    growth: int = 0
    sort: bool = True
    return_mode: int = 1
    llc_policy: int = 0
    big_page: int = 0
    other: int = 0

    @property
    def size_bytes(self) -> int:
        return (self.last_unit + 1) * UNIT_BYTES


def pack(descriptor: Descriptor) -> tuple[int, int, int, int]:
    """The four words; UserError naming a field that does not fit."""
    if descriptor.base % BASE_ALIGN_BYTES:
        raise UserError(
            f"descriptor base 0x{descriptor.base:x} is no multiple of {BASE_ALIGN_BYTES}"
        )
    if descriptor.other & _KNOWN or not 0 <= descriptor.other < 1 << 128:
        raise UserError(f"descriptor bits 0x{descriptor.other:x} overlap named fields")
    values = {
        "base": descriptor.base >> BASE_SHIFT,
        "growth": descriptor.growth,
        "sort": int(descriptor.sort),
        "last_unit": descriptor.last_unit,
        "return_mode": descriptor.return_mode,
        "llc_policy": descriptor.llc_policy,
        "big_page": descriptor.big_page,
        "type": DESCRIPTOR_TYPE,
    }
    bits = descriptor.other
    for field in FIELDS:
        value = values[field.name]
        if not 0 <= value <= field.mask:
            raise UserError(f"descriptor {field.name} {value} is not in 0..{field.mask}")
        bits |= value << field.low
    return tuple(bits >> 32 * i & 0xFFFFFFFF for i in range(4))  # type: ignore[return-value]


def unpack(words: Any) -> Descriptor:
    """The fields of four words; UserError unless the type field says BVH."""
    if len(words) != 4:
        raise UserError(f"a descriptor has 4 words, not {len(words)}")
    bits = sum(int(word) << 32 * i for i, word in enumerate(words))
    values = {field.name: bits >> field.low & field.mask for field in FIELDS}
    if values["type"] != DESCRIPTOR_TYPE:
        raise UserError(
            f"descriptor type {values['type']} is no BVH resource (type {DESCRIPTOR_TYPE})"
        )
    return Descriptor(
        base=GuestAddress(values["base"] << BASE_SHIFT),
        last_unit=values["last_unit"],
        growth=values["growth"],
        sort=bool(values["sort"]),
        return_mode=values["return_mode"],
        llc_policy=values["llc_policy"],
        big_page=values["big_page"],
        other=bits & ~_KNOWN,
    )


def read_field(words: U32, name: str) -> U64:
    """One field of descriptors `[n, 4]`, any type field, as uint64 `[n]`."""
    field = _FIELD[name]
    first, shift = divmod(field.low, 32)
    value = words[:, first].astype(np.uint64) >> np.uint64(shift)
    if shift + field.width > 32:
        value |= words[:, first + 1].astype(np.uint64) << np.uint64(32 - shift)
    return value & np.uint64(field.mask)
