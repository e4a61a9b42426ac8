"""Bytes of fans: their blocks, and the table of the primitive ids that blocks have no room for.

Blocks of one or two triangles are those of `bvh.encode.pack_blocks`, ids in their tails, whatever
else is in the container. The table follows the leaf records; `bvh.layout` has its words.
"""

import numpy as np
from numpy.typing import NDArray

from bvh.fans import LARGEST_FAN, Fans, fan_bounds, fan_triangles
from bvh.header import HEADER, Header
from bvh.layout import (
    FAN_GEOMETRY_LIMIT,
    FAN_GROUP_LEAVES,
    FAN_GROUP_WORDS,
    FAN_ROW_WORDS,
    GEOMETRY_INDEX_MASK,
    GEOMETRY_OPAQUE,
    INVALID_POINTER,
    NODE_TRIANGLE_2,
    ROTATION_NIBBLES,
    TRIANGLE_FLAGS_WORD,
    TRIANGLE_GEOMETRY_WORD,
    TRIANGLE_PRIMITIVE_0_WORD,
    TRIANGLE_PRIMITIVE_1_WORD,
    TRIANGLE_V0_WORD,
    TRIANGLE_V1_WORD,
    TRIANGLE_V2_WORD,
    TRIANGLE_V3_WORD,
    TRIANGLE_V4_WORD,
    UNIT_WORDS,
    pack_fan_geometry,
)
from bvh.tree import Bounds
from bvh.triangles import TriangleSet, opaque_words

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Slot of each type that the apex, V2, stands in (see layout.TRIANGLE_SLOTS).
APEX_SLOTS = (2, 2, 0, 0)
# Rim vertices follow the apex in each triangle: V0 and V1 in the first, the next one in the others.
_LATER_RIM_WORDS = (TRIANGLE_V3_WORD, TRIANGLE_V4_WORD)
_LEAF_UNIT = HEADER.offsets["leaf_unit"] // 4
_FAN_UNIT = HEADER.offsets["fan_unit"] // 4


def make_fans(
    triangles: TriangleSet, bounds: Bounds, opaque: Mask
) -> tuple[Bounds, U32, NDArray[np.uint8], U32]:
    """(bounds of the blocks, and their bytes as `pack_fans` gives them) of `triangles` [m], whose
    boxes are `bounds [m, 2, 3]`."""
    # What neither a fan's flag word nor its row can say stays in blocks of one or two.
    sayable = (triangles.geometry & np.uint32(GEOMETRY_INDEX_MASK)) < FAN_GEOMETRY_LIMIT
    sayable &= triangles.primitive != INVALID_POINTER
    fans = fan_triangles(triangles.positions, triangles.geometry, bounds, allowed=sayable)
    return fan_bounds(fans, bounds), *pack_fans(fans, triangles, opaque)


def pack_fans(
    fans: Fans, triangles: TriangleSet, opaque: Mask
) -> tuple[U32, NDArray[np.uint8], U32]:
    """([n, 16] blocks, [n] node types, [n, 4] primitive ids of fans) in the order of `fans`; the
    ids of blocks of one or two triangles are INVALID_POINTER there. `opaque` is per geometry."""
    count = len(fans.triangles)
    words = np.zeros((count, UNIT_WORDS), np.uint32)
    bits = np.ascontiguousarray(triangles.positions).view(np.uint32)
    nibble = np.array(ROTATION_NIBBLES, np.uint32)
    held = fans.triangles >= 0
    ids = np.full((count, LARGEST_FAN), INVALID_POINTER, np.uint32)
    ids[held] = triangles.primitive[fans.triangles[held]]
    types = (held.sum(axis=1) - 1).astype(np.uint8)
    is_fan = types >= NODE_TRIANGLE_2

    first, apex = fans.triangles[:, 0], fans.corners[:, 0]
    for word, step in ((TRIANGLE_V2_WORD, 0), (TRIANGLE_V0_WORD, 1), (TRIANGLE_V1_WORD, 2)):
        words[:, word : word + 3] = bits[first, (apex + step) % 3]
    words[:, TRIANGLE_V3_WORD : TRIANGLE_V3_WORD + 3] = words[:, TRIANGLE_V2_WORD:TRIANGLE_V3_WORD]
    words[:, TRIANGLE_FLAGS_WORD] = nibble[(APEX_SLOTS[0] - apex) % 3]
    for k in range(1, LARGEST_FAN):
        rows = np.flatnonzero(held[:, k])
        triangle, apex = fans.triangles[rows, k], fans.corners[rows, k]
        if k <= len(_LATER_RIM_WORDS):
            word = _LATER_RIM_WORDS[k - 1]
            words[rows, word : word + 3] = bits[triangle, (apex + 2) % 3]
        words[rows, TRIANGLE_FLAGS_WORD] |= nibble[(APEX_SLOTS[k] - apex) % 3] << np.uint32(8 * k)

    geometry = opaque_words(triangles.geometry[first], opaque)
    fan, plain = np.flatnonzero(is_fan), np.flatnonzero(~is_fan)
    is_opaque = (geometry[fan] & np.uint32(GEOMETRY_OPAQUE)) // np.uint32(GEOMETRY_OPAQUE)
    marks = pack_fan_geometry(geometry[fan] & np.uint32(GEOMETRY_INDEX_MASK), is_opaque)
    words[fan, TRIANGLE_FLAGS_WORD] |= marks
    words[plain, TRIANGLE_GEOMETRY_WORD] = geometry[plain]
    words[plain, TRIANGLE_PRIMITIVE_0_WORD] = ids[plain, 0]
    words[plain, TRIANGLE_PRIMITIVE_1_WORD] = ids[plain, 1]
    ids[plain] = INVALID_POINTER
    return words, types, ids


def pack_fan_table(ids: U32) -> U32:
    """[16 k] words of the table for ids `[leaves, 4]` in leaf order; leaves that are no fans have
    INVALID_POINTER first."""
    is_fan = ids[:, 0] != INVALID_POINTER
    groups = -(-len(ids) // FAN_GROUP_LEAVES)
    padded = np.zeros((groups, FAN_GROUP_LEAVES), np.bool_)
    padded.reshape(-1)[: len(ids)] = is_fan
    first_row = fan_rows_start(len(ids))
    size = (first_row + int(is_fan.sum())) * FAN_ROW_WORDS
    table = np.zeros(-(-size // UNIT_WORDS) * UNIT_WORDS, np.uint32)
    entries = table[: groups * FAN_GROUP_WORDS].reshape(groups, FAN_GROUP_WORDS)
    entries[:, 0] = np.packbits(padded, axis=1, bitorder="little").view("<u4")[:, 0]
    fans = padded.sum(axis=1)
    entries[:, 1] = first_row + np.cumsum(fans) - fans
    table[first_row * FAN_ROW_WORDS : size] = ids[is_fan].reshape(-1)
    return table


def fan_rows_start(leaf_count: int) -> int:
    """The first row's number in the table of a container with so many leaves."""
    return -(-(-(-leaf_count // FAN_GROUP_LEAVES) * FAN_GROUP_WORDS) // FAN_ROW_WORDS)


def fan_table_units(leaf_count: int, fan_count: int) -> int:
    """64-byte units of a table; 0 without fans."""
    rows = fan_rows_start(leaf_count) + fan_count
    return -(-rows * FAN_ROW_WORDS // UNIT_WORDS) if fan_count else 0


def unpack_fan_table(words: U32, header: Header) -> U32 | None:
    """[leaves, 4] ids of the container that `words` starts with, INVALID_POINTER for leaves that
    are no fans; None without fans. ValueError for a row outside the container."""
    if not header.fan_unit:
        return None
    leaves = np.arange(header.leaf_count)
    words = words[: header.size_units * UNIT_WORDS]
    bases = np.zeros(len(leaves), np.int64)
    row = find_fan_rows(words, bases, header.leaf_unit * UNIT_WORDS + leaves * UNIT_WORDS)
    ids = np.full((len(leaves), FAN_ROW_WORDS), INVALID_POINTER, np.uint32)
    fan = row >= 0
    if (row[fan] + FAN_ROW_WORDS > len(words)).any():
        raise ValueError("a row of the fan table lies outside the container")
    ids[fan] = words[row[fan, None] + np.arange(FAN_ROW_WORDS)]
    return ids


def find_fan_rows(words: U32, base: I64, address: I64) -> I64:
    """Word where the row of each block starts, -1 for blocks that are no fans. `base` [n] is the
    word of the block's container, `address` [n] that of the block. IndexError beyond `words`."""
    unit = words[base + _FAN_UNIT].astype(np.int64)
    row = np.full(len(base), -1, np.int64)
    held = np.flatnonzero(unit)
    base, unit, address = base[held], unit[held], address[held]
    leaf_unit = words[base + _LEAF_UNIT].astype(np.int64)
    leaf = (address - base) // UNIT_WORDS - leaf_unit
    table = base + unit * UNIT_WORDS
    entry = table + leaf // FAN_GROUP_LEAVES * FAN_GROUP_WORDS
    mask, first = words[entry].astype(np.int64), words[entry + 1].astype(np.int64)
    bit = np.int64(1) << leaf % FAN_GROUP_LEAVES
    before = np.bitwise_count(mask & (bit - 1)).astype(np.int64)
    found = table + (first + before) * FAN_ROW_WORDS
    row[held] = np.where(mask & bit, found, -1)
    return row
