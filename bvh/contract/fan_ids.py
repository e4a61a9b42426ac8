"""Geometry and primitive ids of fans in guest memory (ledger: triangle.fan, triangle.fan_table).

The instruction knows nothing of them. Where the container is none of ours, or a block of it is not
there, a fan has geometry 0 and its triangles are called by their type, as in `bvh.oracle`.
"""

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract.memory import Access, GuestMemory
from bvh.header import FAN_VERSION, HEADER, MAGIC

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Index = NDArray[np.int64]


def read_fan_ids(
    memory: GuestMemory, base: U64, address: U64, flags: U32, kind: Index
) -> tuple[U32, U32]:
    """(geometry, primitive) [n] of the triangles of type `kind` in fans at `address`, whose flag
    words are `flags`, in containers at `base`; both in bytes."""
    geometry, primitive = np.zeros(len(base), np.uint32), kind.astype(np.uint32)

    def word(at: U64, good: NDArray[np.bool_]) -> Index:
        """The words at byte addresses; those not present leave `good`."""
        blocks, access = memory.load_blocks(at // 64 * 64)
        good &= access == Access.PRESENT
        return blocks[np.arange(len(at)), at % 64 // 4].astype(np.int64)

    def field(name: str) -> Index:
        return word(base + np.uint64(HEADER.offsets[name]), good)

    good = np.ones(len(base), np.bool_)
    good &= field("magic") == MAGIC
    good &= field("version") == FAN_VERSION
    leaf = ((address - base) // layout.UNIT_BYTES).astype(np.int64) - field("leaf_unit")
    table = base + field("fan_unit").astype(np.uint64) * np.uint64(layout.UNIT_BYTES)
    good &= leaf >= 0
    leaf = np.where(good, leaf, 0)
    entry = 4 * (leaf // layout.FAN_GROUP_LEAVES * layout.FAN_GROUP_WORDS)
    mask = word(table + entry.astype(np.uint64), good)
    first = word(table + (entry + 4).astype(np.uint64), good)
    bit = np.int64(1) << leaf % layout.FAN_GROUP_LEAVES
    good &= mask & bit != 0
    row = first + np.bitwise_count(mask & (bit - 1)).astype(np.int64)
    at = 4 * (row * layout.FAN_ROW_WORDS + kind)
    ids = word(table + at.astype(np.uint64), good)
    mask24 = np.uint32(layout.GEOMETRY_INDEX_MASK)
    geometry[good] = layout.unpack_fan_geometry(flags[good]) & mask24
    primitive[good] = ids[good]
    return geometry, primitive
