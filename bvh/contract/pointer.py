"""Node pointers and the number domains around them.

A node pointer is a 64-byte unit index times eight plus a node type (observed: KytyPS5, GPURT,
RADV). The same integer would mean something else as a guest address, as a byte offset from a
descriptor's base, as a word index into an array or as an offset in a dump file, so each has a type
of its own: mixing them up is a type error, and the functions here are the only crossings. Arrays
(`uint64 [n]`) carry pointers only.
"""

from dataclasses import dataclass
from typing import NewType

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from engine.gpu.errors import UserError

NodePointer = NewType("NodePointer", int)  # index << 3 | type; 32 or 64 bits
GuestAddress = NewType("GuestAddress", int)  # bytes in the guest's 48-bit address space
ByteOffset = NewType("ByteOffset", int)  # bytes from a descriptor's base
WordIndex = NewType("WordIndex", int)  # 32-bit words from a descriptor's base
FileOffset = NewType("FileOffset", int)  # bytes from the start of a dump

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]

TYPE_MASK = 7
TYPE_BITS = 3
UNIT_SHIFT = 6  # 64-byte units
POINTER_BITS = (32, 64)
ADDRESS_LIMIT = 1 << 48  # the last block must start below (observed: KytyPS5)
# Pointers that GPURT's traversal keeps for itself; the instruction never makes but the last.
SENTINELS = (0xFFFFFFF8, 0xFFFFFFF9, 0xFFFFFFFB, 0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF)
PARENT_LINK_BYTES = 4  # one u32 a 64-byte unit, growing down


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A node pointer taken apart. `word_index` is the form a shader indexes an array with."""

    kind: int
    index: int  # 64-byte units from the base
    byte_offset: ByteOffset
    word_index: WordIndex


def pack(byte_offset: ByteOffset, kind: int, *, bits: int = 32) -> NodePointer:
    """The pointer of a node; UserError for a misaligned offset, a type above 7, or a pointer that
    does not fit: truncating it would name another node."""
    if bits not in POINTER_BITS:
        raise UserError(f"a node pointer has 32 or 64 bits, not {bits}")
    if byte_offset < 0 or byte_offset % layout.UNIT_BYTES:
        raise UserError(f"byte offset {byte_offset} is no multiple of {layout.UNIT_BYTES}")
    if not 0 <= kind <= TYPE_MASK:
        raise UserError(f"node type {kind} is not in 0..{TYPE_MASK}")
    pointer = byte_offset >> TYPE_BITS | kind
    if pointer >> bits:
        raise UserError(f"byte offset {byte_offset} needs more than a {bits}-bit node pointer")
    return NodePointer(pointer)


def unpack(pointer: NodePointer) -> Unpacked:
    """Type, index, byte offset and word index; every bit of a 64-bit pointer counts."""
    if not 0 <= pointer < 1 << 64:
        raise UserError(f"node pointer 0x{pointer:x} is no 64-bit number")
    above = pointer & ~TYPE_MASK
    return Unpacked(
        kind=pointer & TYPE_MASK,
        index=pointer >> TYPE_BITS,
        byte_offset=ByteOffset(above << TYPE_BITS),
        word_index=WordIndex(above << 1),
    )


def address_of(base: GuestAddress, pointer: NodePointer) -> GuestAddress:
    """Where the node's first byte lies. Traversal adds whole arrays; this is the same for whoever
    has one pointer in hand."""
    return GuestAddress(base + unpack(pointer).byte_offset)


def offset_in(base: GuestAddress, address: GuestAddress) -> ByteOffset:
    """A guest address as an offset from a base; UserError below it."""
    if address < base:
        raise UserError(f"address 0x{address:x} lies below the base 0x{base:x}")
    return ByteOffset(address - base)


def file_offset(address: GuestAddress, dump_base: GuestAddress) -> FileOffset:
    """Where a dump that starts at guest address `dump_base` holds the byte at `address`."""
    return FileOffset(offset_in(dump_base, address))


def parent_link(pointer: NodePointer, convention: str) -> int:
    """Where a driver keeps a node's parent pointer: bytes from the tree base (`radv`) or from the
    header's start (`gpurt`); negative is below. A node of two blocks has the link of its first."""
    unit = unpack(pointer).index
    if convention == "radv":
        return -PARENT_LINK_BYTES * (unit + 1)
    if convention == "gpurt":
        return -PARENT_LINK_BYTES * (unit - 1)
    raise UserError(f"unknown parent link convention '{convention}' (radv or gpurt)")


def join(low: U32, high: U32) -> U64:
    """64-bit pointers `[n]` from their register words."""
    return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)


def kinds(pointers: U64) -> NDArray[np.int64]:
    """Node types `[n]`."""
    return (pointers & np.uint64(TYPE_MASK)).astype(np.int64)


def indices(pointers: U64) -> U64:
    """Unit indices `[n]`, below 2^61."""
    return pointers >> np.uint64(TYPE_BITS)
