"""One place of a valid buffer, damaged: six kinds, each of several sorts.

Whether a mutation is structural follows from what was changed and never from what `validate` says:
structural means that the bytes no longer say one tree over one set of triangles and instances as
the scene has them. Harmless are wider boxes, other legal rotations, vertices that move inside
their box, and every bit that no reader uses. A harmless mutation may change what a ray hits; it
never makes readers disagree.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bvh import layout
from bvh.fuzz.subjects import ContainerMap, Subject
from bvh.header import HEADER

KINDS = ("pointer", "tag", "bounds", "flag", "instance", "descriptor")
WORDS, PARENTS = 0, 1  # which buffer an edit is of

ANY_WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class Mutation:
    """`edits` are (WORDS or PARENTS, index, new word); `focus` is the word where the damaged
    record starts; `moved` (container, block) is set when a harmless edit moves a vertex."""

    kind: str
    sort: str
    structural: bool
    edits: tuple[tuple[int, int, int], ...]
    focus: int
    moved: tuple[int, int] | None = None

    def __str__(self) -> str:
        names = ("words", "parents")
        edits = ", ".join(f"{names[b]}[{i}] = 0x{value:08x}" for b, i, value in self.edits)
        return f"{self.kind}/{self.sort}: {edits}"


Rng = np.random.Generator
Sort = Callable[[Subject, Rng], "Mutation | None"]


def mutate(subject: Subject, rng: Rng) -> Mutation:
    """A random mutation that changes at least one bit."""
    while True:
        kind = KINDS[int(rng.integers(len(KINDS)))]
        sorts = SORTS[kind]
        name = sorts[int(rng.integers(len(sorts)))]
        made = name(subject, rng)
        if made is None:
            continue
        buffers = (subject.words, subject.parents)
        if any(int(buffers[b][i]) != value for b, i, value in made.edits):
            return made


def apply(subject: Subject, mutation: Mutation) -> list[tuple[int, int, int]]:
    """Damages the subject in place; gives what `undo` needs."""
    buffers = (subject.words, subject.parents)
    before = [(b, i, int(buffers[b][i])) for b, i, _ in mutation.edits]
    for b, i, value in mutation.edits:
        buffers[b][i] = value
    return before


def undo(subject: Subject, before: list[tuple[int, int, int]]) -> None:
    """Takes `apply` back."""
    buffers = (subject.words, subject.parents)
    for b, i, value in reversed(before):
        buffers[b][i] = value


def bits(value: object) -> int:
    """The word of a float32."""
    return int(np.array([value], np.float32).view(np.uint32)[0])


def _container(s: Subject, rng: Rng) -> ContainerMap:
    return s.containers[int(rng.integers(len(s.containers)))]


def _slot(s: Subject, rng: Rng, used: bool = True) -> tuple[ContainerMap, int, int, int] | None:
    """(container, node, slot, word of its pointer) of a random slot that holds a child or not."""
    c = _container(s, rng)
    words = c.node_word[:, None] + np.arange(4)
    held = s.words[words] != layout.INVALID_POINTER
    nodes, slots = np.nonzero(held == used)
    if not len(nodes):
        return None
    i = int(rng.integers(len(nodes)))
    return c, int(nodes[i]), int(slots[i]), int(words[nodes[i], slots[i]])


def _set_pointer(
    s: Subject, rng: Rng, sort: str, value: Callable[..., int | None]
) -> Mutation | None:
    found = _slot(s, rng)
    if found is None:
        return None
    c, node, slot, word = found
    new = value(c, node, int(s.words[word]))
    if new is None or new == int(s.words[word]):
        return None
    return Mutation("pointer", sort, True, ((WORDS, word, new),), int(c.node_word[node]))


def pointer_random(s: Subject, rng: Rng) -> Mutation | None:
    return _set_pointer(s, rng, "random", lambda c, n, old: int(rng.integers(ANY_WORD)))


def pointer_bit(s: Subject, rng: Rng) -> Mutation | None:
    return _set_pointer(s, rng, "bit", lambda c, n, old: old ^ 1 << int(rng.integers(3, 32)))


def pointer_self(s: Subject, rng: Rng) -> Mutation | None:
    return _set_pointer(s, rng, "self", lambda c, n, old: c.node_pointer(n))


def pointer_root(s: Subject, rng: Rng) -> Mutation | None:
    return _set_pointer(s, rng, "root", lambda c, n, old: layout.ROOT_POINTER)


def pointer_parent(s: Subject, rng: Rng) -> Mutation | None:
    def parent(c: ContainerMap, node: int, old: int) -> int | None:
        link = int(s.parents[c.node_word[node] // layout.UNIT_WORDS])
        return None if link == layout.INVALID_POINTER else link

    return _set_pointer(s, rng, "cycle", parent)


def pointer_other(s: Subject, rng: Rng) -> Mutation | None:
    """Another node of the same container: shared, or out of order."""
    return _set_pointer(
        s, rng, "shared", lambda c, n, old: c.node_pointer(int(rng.integers(len(c.node_word))))
    )


def pointer_past_end(s: Subject, rng: Rng) -> Mutation | None:
    def beyond(c: ContainerMap, node: int, old: int) -> int:
        unit = c.header.size_units + int(rng.integers(0, 1 << int(rng.integers(1, 28))))
        return (unit << 3 | old & 7) & 0xFFFFFFFF

    return _set_pointer(s, rng, "past the end", beyond)


def pointer_lost(s: Subject, rng: Rng) -> Mutation | None:
    return _set_pointer(s, rng, "lost", lambda c, n, old: layout.INVALID_POINTER)


def pointer_filled(s: Subject, rng: Rng) -> Mutation | None:
    found = _slot(s, rng, used=False)
    if found is None:
        return None
    c, node, _, word = found
    new = c.node_pointer(int(rng.integers(len(c.node_word))))
    return Mutation("pointer", "filled", True, ((WORDS, word, new),), int(c.node_word[node]))


def pointer_swapped(s: Subject, rng: Rng) -> Mutation | None:
    """Two children of a node exchanged without their boxes."""
    found = _slot(s, rng)
    if found is None:
        return None
    c, node, slot, word = found
    other = int(c.node_word[node]) + (slot + 1) % 4
    a, b = int(s.words[word]), int(s.words[other])
    if layout.INVALID_POINTER in (a, b):
        return None
    edits = ((WORDS, word, b), (WORDS, other, a))
    return Mutation("pointer", "swapped", True, edits, int(c.node_word[node]))


def pointer_parent_link(s: Subject, rng: Rng) -> Mutation | None:
    c = _container(s, rng)
    unit = c.base // layout.UNIT_WORDS + int(rng.integers(c.header.size_units))
    new = int(rng.integers(ANY_WORD))
    return Mutation("pointer", "parent link", True, ((PARENTS, unit, new),), c.base + 32)


def tag_child(s: Subject, rng: Rng) -> Mutation | None:
    found = _slot(s, rng)
    if found is None:
        return None
    c, node, _, word = found
    old = int(s.words[word])
    new = old ^ int(rng.integers(1, 8))
    return Mutation(
        "tag", f"{old & 7} to {new & 7}", True, ((WORDS, word, new),), int(c.node_word[node])
    )


def _bound(c: ContainerMap, node: int, slot: int, side: int, axis: int) -> tuple[int, int]:
    """(word, shift) of one bound; the shift is 0 or 16 in FP16 nodes."""
    first = int(c.node_word[node]) + layout.BOX_BOUNDS_WORD
    place = 6 * slot + 3 * side + axis
    if c.node_half[node]:
        return first + place // 2, 16 * (place % 2)
    return first + place, 0


def _bound_edit(
    s: Subject, c: ContainerMap, at: tuple[int, int, int, int], value: np.float32 | int
) -> tuple[int, int, int]:
    """Sets one bound (node, slot, side, axis) to a float (FP16: rounded outward) or to raw bits."""
    node, slot, side, axis = at
    word, shift = _bound(c, node, slot, side, axis)
    if not c.node_half[node]:
        return (WORDS, word, value if isinstance(value, int) else bits(value))
    if not isinstance(value, int):
        low, high = layout.round_half_outward(*np.full((2, 1), value, np.float32))
        value = int((high if side else low)[0])
    kept = int(s.words[word]) & ~(0xFFFF << shift)
    return (WORDS, word, kept | value << shift)


def _read_bound(s: Subject, c: ContainerMap, at: tuple[int, int, int, int]) -> np.float32:
    word, shift = _bound(c, *at)
    raw = int(s.words[word])
    if c.node_half[at[0]]:
        return np.float32(np.array([raw >> shift & 0xFFFF], np.uint16).view(np.float16)[0])
    return np.float32(np.array([raw], np.uint32).view(np.float32)[0])


def _random_bound(
    s: Subject, rng: Rng, used: bool = True
) -> tuple[ContainerMap, tuple[int, int, int, int]] | None:
    found = _slot(s, rng, used)
    if found is None:
        return None
    c, node, slot, _ = found
    return c, (node, slot, int(rng.integers(2)), int(rng.integers(3)))


def _bounds(
    sort: str, structural: bool, c: ContainerMap, node: int, *edits: tuple[int, int, int]
) -> Mutation:
    return Mutation("bounds", sort, structural, edits, int(c.node_word[node]))


def bounds_not_finite(s: Subject, rng: Rng) -> Mutation | None:
    found = _random_bound(s, rng)
    if found is None:
        return None
    c, at = found
    half = (0x7E00, 0x7C00, 0xFC00)
    full = (0x7FC00000, 0x7F800000, 0xFF800000)
    raw = (half if c.node_half[at[0]] else full)[int(rng.integers(3))]
    return _bounds("not finite", True, c, at[0], _bound_edit(s, c, at, raw))


def bounds_excluding(s: Subject, rng: Rng) -> Mutation | None:
    """The lower bound above all that is below the slot, or the other way round."""
    found = _random_bound(s, rng)
    if found is None:
        return None
    c, (node, slot, side, axis) = found
    far = np.float32(c.exact[node, slot, 1 - side, axis])
    past = far + np.float32((-1 if side else 1) * (0.1 + 0.2 * abs(far)))
    return _bounds("excluding", True, c, node, _bound_edit(s, c, (node, slot, side, axis), past))


def bounds_one_step(s: Subject, rng: Rng) -> Mutation | None:
    """One ULP inward of an FP32 bound of a BLAS that has no room to give."""
    found = _random_bound(s, rng)
    if found is None:
        return None
    c, at = found
    node, slot, side, axis = at
    value = _read_bound(s, c, at)
    if c.rows is None or c.node_half[node] or value != c.exact[node, slot, side, axis]:
        return None
    new = np.nextafter(value, np.float32(-np.inf if side else np.inf))
    return _bounds("one step inward", True, c, node, _bound_edit(s, c, at, new))


def bounds_swapped(s: Subject, rng: Rng) -> Mutation | None:
    found = _random_bound(s, rng)
    if found is None:
        return None
    c, (node, slot, _, axis) = found
    low, high = (node, slot, 0, axis), (node, slot, 1, axis)
    exact = c.exact[node, slot, :, axis]
    if not exact[0] < exact[1] or c.node_half[node]:
        return None  # FP16: two bounds may share a word, which one edit each cannot express
    a, b = _read_bound(s, c, low), _read_bound(s, c, high)
    edits = (_bound_edit(s, c, low, b), _bound_edit(s, c, high, a))
    return _bounds("swapped", True, c, node, *edits)


def bounds_wider(s: Subject, rng: Rng) -> Mutation | None:
    found = _random_bound(s, rng)
    if found is None:
        return None
    c, at = found
    by = np.float32(s.size * 2.0 ** rng.uniform(-20, 3)) * (1 if at[2] else -1)
    return _bounds("wider", False, c, at[0], _bound_edit(s, c, at, _read_bound(s, c, at) + by))


def bounds_bit(s: Subject, rng: Rng) -> Mutation | None:
    """Any bit of a bound of a BLAS; the exact bounds below say what it did."""
    found = _random_bound(s, rng)
    if found is None or found[0].rows is None:
        return None
    c, at = found
    node, slot, side, axis = at
    word, shift = _bound(c, *at)
    bit = int(rng.integers(16 if c.node_half[node] else 32)) + shift
    old = int(s.words[word])
    edit = (WORDS, word, old ^ 1 << bit)
    s.words[word] = edit[2]
    value = _read_bound(s, c, at)
    s.words[word] = old
    exact = c.exact[node, slot, side, axis]
    sound = np.isfinite(value) and (value >= exact if side else value <= exact)
    return _bounds("bit", not sound, c, node, edit)


def bounds_of_empty_slot(s: Subject, rng: Rng) -> Mutation | None:
    """A number where NaN marks an empty slot, or another NaN."""
    found = _random_bound(s, rng, used=False)
    if found is None:
        return None
    c, at = found
    if rng.random() < 0.5:
        return _bounds("empty slot filled", True, c, at[0], _bound_edit(s, c, at, np.float32(0.5)))
    raw = 0x7E01 if c.node_half[at[0]] else 0x7FC00001 + int(rng.integers(1 << 20))
    return _bounds("another NaN", False, c, at[0], _bound_edit(s, c, at, raw))


def bounds_tail(s: Subject, rng: Rng) -> Mutation | None:
    """Words 28 to 31 of an FP32 node, which nobody reads."""
    c = _container(s, rng)
    wide = np.flatnonzero(~c.node_half)
    node = int(wide[int(rng.integers(len(wide)))])
    word = int(c.node_word[node]) + layout.BOX_FP32_TAIL_WORD + int(rng.integers(4))
    return _bounds("unread tail", False, c, node, (WORDS, word, int(rng.integers(ANY_WORD))))


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
    """A geometry of many blocks that is opaque in all but one, or in one alone."""
    _, c, block, word, count = _block(s, rng)
    assert c.rows is not None
    at, bit = layout.TRIANGLE_GEOMETRY_WORD, layout.GEOMETRY_OPAQUE
    if count > 2:
        at, bit = layout.TRIANGLE_FLAGS_WORD, layout.FAN_OPAQUE
    blocks = np.unique(c.rows.block[c.rows.geometry == _geometry(c, block)])
    return _flag("opacity", len(blocks) > 1, word, (at, int(s.words[word + at]) ^ bit))


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
        past = _read_bound(s, c, box) + np.float32(rng.uniform(0.01, 10.0))
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


def _instance(s: Subject, rng: Rng) -> int:
    return int(s.instance_words[int(rng.integers(len(s.instance_words)))])


def instance_word(s: Subject, rng: Rng) -> Mutation | None:
    """A bit of anything but the matrices."""
    word = _instance(s, rng)
    fields = {
        "BLAS pointer": (layout.INSTANCE_BLAS_WORD, layout.INSTANCE_BLAS_WORD + 1),
        "mask or custom index": (layout.INSTANCE_CUSTOM_WORD,),
        "object or flags": (layout.INSTANCE_OBJECT_WORD,),
        "id": (layout.INSTANCE_ID_WORD,),
        "BLAS base": (layout.INSTANCE_BLAS_BASE_WORD,),
        "geometry count": (layout.INSTANCE_GEOMETRY_COUNT_WORD,),
        "reserved": (layout.INSTANCE_RESERVED_WORD,),
    }
    name = list(fields)[int(rng.integers(len(fields)))]
    at = word + fields[name][int(rng.integers(len(fields[name])))]
    new = int(s.words[at]) ^ 1 << int(rng.integers(32))
    if name == "object or flags":
        # Bits 27:24 are no part of either field.
        new = int(s.words[at]) ^ 1 << int(rng.choice([*range(24), 28, 29, 30, 31]))
    return Mutation("instance", name, name != "reserved", ((WORDS, at, new),), word)


def instance_random(s: Subject, rng: Rng) -> Mutation | None:
    """A random BLAS base or pointer word."""
    word = _instance(s, rng)
    at = (layout.INSTANCE_BLAS_WORD, layout.INSTANCE_BLAS_BASE_WORD)[int(rng.integers(2))]
    edit = (WORDS, word + at, int(rng.integers(ANY_WORD)))
    return Mutation("instance", "random base or pointer", True, (edit,), word)


def instance_other_blas(s: Subject, rng: Rng) -> Mutation | None:
    """A consistent reference to another BLAS than the scene's."""
    word = _instance(s, rng)
    base = int(s.words[word + layout.INSTANCE_BLAS_BASE_WORD])
    others = [c.base for c in s.containers[1:] if c.base != base * layout.UNIT_WORDS]
    if not others:
        return None
    new = others[int(rng.integers(len(others)))] * 4
    root = (new + layout.HEADER_BYTES) >> 3 | layout.NODE_BOX_FP32
    edits = (
        (WORDS, word + layout.INSTANCE_BLAS_WORD, root),
        (WORDS, word + layout.INSTANCE_BLAS_BASE_WORD, new // layout.UNIT_BYTES),
    )
    return Mutation("instance", "another BLAS", True, edits, word)


def instance_matrix(s: Subject, rng: Rng) -> Mutation | None:
    """One entry of one matrix: no number, or off by far more than rounding."""
    word = _instance(s, rng)
    first = (layout.INSTANCE_WORLD_TO_OBJECT_WORD, layout.INSTANCE_OBJECT_TO_WORLD_WORD)
    at = word + first[int(rng.integers(2))] + int(rng.integers(12))
    if rng.random() < 0.3:
        raw = (0x7FC00000, 0x7F800000, 0xFF800000)[int(rng.integers(3))]
        return Mutation("instance", "matrix not finite", True, ((WORDS, at, raw),), word)
    value = s.words[at : at + 1].view(np.float32)[0]
    new = value + np.float32(rng.choice([-1, 1]) * rng.uniform(0.05, 2.0))
    return Mutation("instance", "matrices differ", True, ((WORDS, at, bits(new)),), word)


def descriptor_bit(s: Subject, rng: Rng) -> Mutation | None:
    """A bit of a header, of its descriptor half of the time; not of its bounds."""
    c = _container(s, rng)
    first = HEADER.offsets["descriptor"] // 4
    word = first + int(rng.integers(4)) if rng.random() < 0.5 else int(rng.integers(32))
    bounds = HEADER.offsets["bounds_min"] // 4
    if bounds <= word < bounds + 6:
        return None
    new = int(s.words[c.base + word]) ^ 1 << int(rng.integers(32))
    sort = "descriptor" if first <= word < first + 4 else "header"
    return Mutation("descriptor", sort, True, ((WORDS, c.base + word, new),), c.base + 32)


def descriptor_bounds(s: Subject, rng: Rng) -> Mutation | None:
    """Header bounds that shrink below the tree's, become no number, or (TLAS) grow."""
    c = _container(s, rng)
    side, axis = int(rng.integers(2)), int(rng.integers(3))
    at = c.base + HEADER.offsets["bounds_max" if side else "bounds_min"] // 4 + axis
    roll = rng.random()
    if roll < 0.3:
        return Mutation(
            "descriptor", "bounds not finite", True, ((WORDS, at, 0x7FC00000),), c.base + 32
        )
    value = c.header.bounds[side, axis]
    out = np.float32((1 if side else -1) * rng.uniform(0.01, 5.0))
    if roll < 0.6:
        if not c.exact[0, :, side, axis].size:
            return None
        past = c.header.bounds[1 - side, axis] - out
        return Mutation(
            "descriptor", "bounds excluding", True, ((WORDS, at, bits(past)),), c.base + 32
        )
    if c.rows is not None:
        return None
    grown = ((WORDS, at, bits(value + out)),)
    return Mutation("descriptor", "wider bounds", False, grown, c.base + 32)


SORTS: dict[str, tuple[Sort, ...]] = {
    "pointer": (
        pointer_random,
        pointer_bit,
        pointer_self,
        pointer_root,
        pointer_parent,
        pointer_other,
        pointer_past_end,
        pointer_lost,
        pointer_filled,
        pointer_swapped,
        pointer_parent_link,
    ),
    "tag": (tag_child,),
    "bounds": (
        bounds_not_finite,
        bounds_excluding,
        bounds_one_step,
        bounds_swapped,
        bounds_wider,
        bounds_bit,
        bounds_of_empty_slot,
        bounds_tail,
    ),
    "flag": (
        flag_rotation,
        flag_unread,
        flag_opaque,
        flag_geometry,
        flag_pair,
        flag_primitive,
        flag_vertex,
        flag_fourth_vertex,
        flag_fan_table,
    ),
    "instance": (instance_word, instance_random, instance_other_blas, instance_matrix),
    "descriptor": (descriptor_bit, descriptor_bounds),
}

__all__ = ["KINDS", "SORTS", "Mutation", "apply", "mutate", "undo"]
