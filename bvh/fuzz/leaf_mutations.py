"""Damage to triangle blocks: flags, ids, vertices, and the table of fans."""

import numpy as np

from bvh import layout
from bvh.fuzz.container_map import ContainerMap
from bvh.fuzz.damage import (
    ANY_WORD,
    WORDS,
    Mutation,
    Rng,
    bits,
    read_bound,
)
from bvh.fuzz.subjects import Subject


def _block(s: Subject, rng: Rng) -> tuple[int, ContainerMap, int, int, int]:
    """(container number, container, block, its first word, triangles in it)."""
    number = int(rng.integers(1, len(s.containers)))
    c = s.containers[number]
    block = int(rng.integers(len(c.leaf_word)))
    return number, c, block, int(c.leaf_word[block]), c.count(block)


def _flag(sort: str, structural: bool, word: int, *edits: tuple[int, int]) -> Mutation:
    placed = tuple((WORDS, word + at, value) for at, value in edits)
    return Mutation("flag", sort, structural, placed, word)


def flag_rotation(s: Subject, rng: Rng) -> Mutation | None:
    """Another nibble of a triangle that is there: legal names other vertices, illegal none."""
    _, _, _, word, count = _block(s, rng)
    shift = 8 * int(rng.integers(count))
    nibble = int(rng.integers(16))
    flags = int(s.words[word + layout.TRIANGLE_FLAGS_WORD])
    new = flags & ~(0xF << shift) | nibble << shift
    legal = nibble in layout.ROTATION_NIBBLES
    sort = "other rotation" if legal else "no rotation"
    return _flag(sort, not legal, word, (layout.TRIANGLE_FLAGS_WORD, new))


def flag_unread(s: Subject, rng: Rng) -> Mutation | None:
    """Bits that no reader uses: bytes of absent triangles; but in fans high nibbles, and bits 25
    up of the geometry word."""
    _, _, _, word, count = _block(s, rng)
    at, bit = layout.TRIANGLE_FLAGS_WORD, int(rng.integers(4, 8)) + 8 * int(rng.integers(4))
    if count > 2:
        if count == 4:
            return None
        bit = int(rng.integers(24, 28))
    elif rng.random() < 0.3:
        bit = int(rng.integers(8 * count, 32))
    elif rng.random() < 0.3:
        at, bit = layout.TRIANGLE_GEOMETRY_WORD, int(rng.integers(25, 32))
    return _flag("unread bit", False, word, (at, int(s.words[word + at]) ^ 1 << bit))


def _geometry(c: ContainerMap, block: int) -> int:
    assert c.rows is not None
    return int(c.rows.geometry[np.searchsorted(c.rows.block, block)])


def flag_opaque(s: Subject, rng: Rng) -> Mutation | None:
    """A block that is opaque and was not, or the other way: any block may be."""
    _, _, _, word, count = _block(s, rng)
    at, bit = layout.TRIANGLE_GEOMETRY_WORD, layout.GEOMETRY_OPAQUE
    if count > 2:
        at, bit = layout.TRIANGLE_FLAGS_WORD, layout.FAN_OPAQUE
    return _flag("opacity", False, word, (at, int(s.words[word + at]) ^ bit))


def flag_geometry(s: Subject, rng: Rng) -> Mutation | None:
    _, c, _, word, count = _block(s, rng)
    if count > 2:
        at = layout.TRIANGLE_FLAGS_WORD
        index = int(rng.integers(c.header.geometry_count, layout.FAN_GEOMETRY_LIMIT))
        opaque = int(s.words[word + at]) >> 31
        marks = layout.pack_fan_geometry(index, opaque)
        return _flag("geometry", True, word, (at, int(s.words[word + at]) & 0x0F0F0F0F | marks))
    at = layout.TRIANGLE_GEOMETRY_WORD
    index = int(rng.integers(c.header.geometry_count, layout.GEOMETRY_INDEX_MASK + 1))
    new = int(s.words[word + at]) & ~layout.GEOMETRY_INDEX_MASK | index
    return _flag("geometry", True, word, (at, new))


def flag_pair(s: Subject, rng: Rng) -> Mutation | None:
    """The word that says how many triangles a block holds, against its pointer's type: the id of
    the second, or of a fan's fourth."""
    _, c, block, word, count = _block(s, rng)
    at = layout.TRIANGLE_PRIMITIVE_1_WORD
    if count > 2:
        at = int(c.fan_row[block]) + layout.FAN_ROW_WORDS - 1 - word
    new = layout.INVALID_POINTER if count in (2, 4) else int(rng.integers(1 << 31))
    return _flag("triangle count", True, word, (at, new))


def flag_primitive(s: Subject, rng: Rng) -> Mutation | None:
    """The id of another triangle of the same geometry, or one that nobody has."""
    _, c, block, word, count = _block(s, rng)
    assert c.rows is not None
    at = layout.TRIANGLE_PRIMITIVE_0_WORD
    if count > 2:
        at = int(c.fan_row[block]) + int(rng.integers(count)) - word
    if rng.random() < 0.5:
        return _flag("new primitive", False, word, (at, int(rng.integers(1 << 24, 1 << 31))))
    same = np.flatnonzero(c.rows.geometry == _geometry(c, block))
    new = int(c.rows.primitive[same[int(rng.integers(len(same)))]])
    return _flag("primitive twice", True, word, (at, new))


def flag_fan_table(s: Subject, rng: Rng) -> Mutation | None:
    """Which leaves are fans, where their rows start, or what fills the table up."""
    _, c, block, word, _ = _block(s, rng)
    if not c.header.fan_unit:
        return None
    table = c.base + c.header.fan_unit * layout.UNIT_WORDS
    at = table + block // layout.FAN_GROUP_LEAVES * layout.FAN_GROUP_WORDS
    roll = rng.random()
    if roll < 0.4:
        new = int(s.words[at]) ^ 1 << block % layout.FAN_GROUP_LEAVES
        return _flag("fan or not", True, word, (at - word, new))
    if roll < 0.8:
        return _flag("first row", True, word, (at + 1 - word, int(rng.integers(ANY_WORD))))
    end = c.base + c.header.size_units * layout.UNIT_WORDS
    last = int(c.fan_row.max()) + layout.FAN_ROW_WORDS
    if last == end:
        return None
    at = int(rng.integers(last, end))
    return _flag("filled table", True, word, (at - word, int(rng.integers(1, ANY_WORD))))


def flag_vertex(s: Subject, rng: Rng) -> Mutation | None:
    """A coordinate that is no number, outside the block's box, or moved inside it."""
    number, c, block, word, count = _block(s, rng)
    coordinate = int(rng.integers((9, 12, 15, 15)[count - 1]))
    axis = coordinate % 3
    low, high = c.exact[c.leaf_parent[block], c.leaf_slot[block], :, axis]
    roll = rng.random()
    if roll < 0.3:
        raw = (0x7FC00000, 0x7F800000, 0xFF800000)[int(rng.integers(3))]
        return _flag("vertex not finite", True, word, (coordinate, raw))
    if roll < 0.6:
        box = (int(c.leaf_parent[block]), int(c.leaf_slot[block]), 1, axis)
        past = read_bound(s, c, box) + np.float32(rng.uniform(0.01, 10.0))
        return _flag("vertex outside", True, word, (coordinate, bits(past)))
    inside = np.float32(low + (high - low) * np.float32(rng.random()))
    if not low <= inside <= high:
        return None
    edit = (WORDS, word + coordinate, bits(inside))
    return Mutation("flag", "vertex inside", False, (edit,), word, (number, block))


def flag_fourth_vertex(s: Subject, rng: Rng) -> Mutation | None:
    """V3 of a block of one triangle, which nobody reads."""
    _, _, _, word, count = _block(s, rng)
    if count > 1:
        return None
    at = layout.TRIANGLE_V3_WORD + int(rng.integers(3))
    return _flag("unread vertex", False, word, (at, int(rng.integers(ANY_WORD))))
