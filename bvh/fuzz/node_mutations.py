"""Damage to box nodes: pointers, their type tags, parent links, bounds."""

from collections.abc import Callable

import numpy as np

from bvh import layout
from bvh.fuzz.container_map import ContainerMap
from bvh.fuzz.damage import (
    ANY_WORD,
    PARENTS,
    WORDS,
    Mutation,
    Rng,
    bound_edit,
    bound_place,
    random_container,
    random_slot,
    read_bound,
)
from bvh.fuzz.subjects import Subject


def _set_pointer(
    s: Subject, rng: Rng, sort: str, value: Callable[..., int | None]
) -> Mutation | None:
    found = random_slot(s, rng)
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
    found = random_slot(s, rng, used=False)
    if found is None:
        return None
    c, node, _, word = found
    new = c.node_pointer(int(rng.integers(len(c.node_word))))
    return Mutation("pointer", "filled", True, ((WORDS, word, new),), int(c.node_word[node]))


def pointer_swapped(s: Subject, rng: Rng) -> Mutation | None:
    """Two children of a node exchanged without their boxes."""
    found = random_slot(s, rng)
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
    c = random_container(s, rng)
    unit = c.base // layout.UNIT_WORDS + int(rng.integers(c.header.size_units))
    new = int(rng.integers(ANY_WORD))
    return Mutation("pointer", "parent link", True, ((PARENTS, unit, new),), c.base + 32)


def tag_child(s: Subject, rng: Rng) -> Mutation | None:
    found = random_slot(s, rng)
    if found is None:
        return None
    c, node, _, word = found
    old = int(s.words[word])
    new = old ^ int(rng.integers(1, 8))
    return Mutation(
        "tag", f"{old & 7} to {new & 7}", True, ((WORDS, word, new),), int(c.node_word[node])
    )


def _random_bound(
    s: Subject, rng: Rng, used: bool = True
) -> tuple[ContainerMap, tuple[int, int, int, int]] | None:
    found = random_slot(s, rng, used)
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
    return _bounds("not finite", True, c, at[0], bound_edit(s, c, at, raw))


def bounds_excluding(s: Subject, rng: Rng) -> Mutation | None:
    """The lower bound above all that is below the slot, or the other way round."""
    found = _random_bound(s, rng)
    if found is None:
        return None
    c, (node, slot, side, axis) = found
    far = np.float32(c.exact[node, slot, 1 - side, axis])
    past = far + np.float32((-1 if side else 1) * (0.1 + 0.2 * abs(far)))
    return _bounds("excluding", True, c, node, bound_edit(s, c, (node, slot, side, axis), past))


def bounds_one_step(s: Subject, rng: Rng) -> Mutation | None:
    """One ULP inward of an FP32 bound of a BLAS that has no room to give."""
    found = _random_bound(s, rng)
    if found is None:
        return None
    c, at = found
    node, slot, side, axis = at
    value = read_bound(s, c, at)
    if c.rows is None or c.node_half[node] or value != c.exact[node, slot, side, axis]:
        return None
    new = np.nextafter(value, np.float32(-np.inf if side else np.inf))
    return _bounds("one step inward", True, c, node, bound_edit(s, c, at, new))


def bounds_swapped(s: Subject, rng: Rng) -> Mutation | None:
    found = _random_bound(s, rng)
    if found is None:
        return None
    c, (node, slot, _, axis) = found
    low, high = (node, slot, 0, axis), (node, slot, 1, axis)
    exact = c.exact[node, slot, :, axis]
    if not exact[0] < exact[1] or c.node_half[node]:
        return None  # FP16: two bounds may share a word, which one edit each cannot express
    a, b = read_bound(s, c, low), read_bound(s, c, high)
    edits = (bound_edit(s, c, low, b), bound_edit(s, c, high, a))
    return _bounds("swapped", True, c, node, *edits)


def bounds_wider(s: Subject, rng: Rng) -> Mutation | None:
    found = _random_bound(s, rng)
    if found is None:
        return None
    c, at = found
    by = np.float32(s.size * 2.0 ** rng.uniform(-20, 3)) * (1 if at[2] else -1)
    return _bounds("wider", False, c, at[0], bound_edit(s, c, at, read_bound(s, c, at) + by))


def bounds_bit(s: Subject, rng: Rng) -> Mutation | None:
    """Any bit of a bound of a BLAS; the exact bounds below say what it did."""
    found = _random_bound(s, rng)
    if found is None or found[0].rows is None:
        return None
    c, at = found
    node, slot, side, axis = at
    word, shift = bound_place(c, *at)
    bit = int(rng.integers(16 if c.node_half[node] else 32)) + shift
    old = int(s.words[word])
    edit = (WORDS, word, old ^ 1 << bit)
    s.words[word] = edit[2]
    value = read_bound(s, c, at)
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
        return _bounds("empty slot filled", True, c, at[0], bound_edit(s, c, at, np.float32(0.5)))
    raw = 0x7E01 if c.node_half[at[0]] else 0x7FC00001 + int(rng.integers(1 << 20))
    return _bounds("another NaN", False, c, at[0], bound_edit(s, c, at, raw))


def bounds_tail(s: Subject, rng: Rng) -> Mutation | None:
    """Words 28 to 31 of an FP32 node, which nobody reads."""
    c = random_container(s, rng)
    wide = np.flatnonzero(~c.node_half)
    node = int(wide[int(rng.integers(len(wide)))])
    word = int(c.node_word[node]) + layout.BOX_FP32_TAIL_WORD + int(rng.integers(4))
    return _bounds("unread tail", False, c, node, (WORDS, word, int(rng.integers(ANY_WORD))))
