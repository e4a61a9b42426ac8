"""Damage to instances and to containers' headers."""

import numpy as np

from bvh import layout
from bvh.fuzz.damage import (
    ANY_WORD,
    WORDS,
    Mutation,
    Rng,
    bits,
    random_container,
)
from bvh.fuzz.subjects import Subject
from bvh.header import HEADER


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
    c = random_container(s, rng)
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
    c = random_container(s, rng)
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
