"""Descriptor words: every field in its place, refused where it does not fit."""

from dataclasses import replace

import numpy as np
import pytest

from bvh.contract import descriptor as d
from bvh.contract.descriptor import Descriptor
from bvh.contract.pointer import GuestAddress
from bvh.layout import pack_descriptor
from engine.gpu.errors import UserError

FIXTURE = Descriptor(base=GuestAddress(0x10000), last_unit=256)


def test_known_words() -> None:
    assert d.pack(FIXTURE) == (0x100, 0x80000000, 0x100, 0x81000000)
    radv = Descriptor(base=GuestAddress(0), last_unit=(1 << 42) - 1)
    assert d.pack(radv) == (0, 0x80000000, 0xFFFFFFFF, 0x810003FF)
    assert d.pack(replace(FIXTURE, growth=6))[1] == 0x83000000
    assert d.pack(replace(FIXTURE, sort=False, return_mode=0)) == (0x100, 0, 0x100, 0x80000000)


# One bit or value a field, and the words where it has to appear.
@pytest.mark.parametrize(
    ("change", "word", "bits"),
    [
        ({"base": GuestAddress(1 << 47)}, 1, 0x80),
        ({"base": GuestAddress(0x100)}, 0, 1),
        ({"growth": 255}, 1, 0x7F800000),
        ({"sort": True}, 1, 0x80000000),
        ({"last_unit": 1 << 41}, 3, 0x200),
        ({"last_unit": 1}, 2, 1),
        ({"return_mode": 1}, 3, 0x01000000),
        ({"llc_policy": 3}, 3, 0x06000000),
        ({"big_page": 1}, 3, 0x08000000),
        ({"other": 1 << 52}, 1, 1 << 20),
        ({"other": 1 << 119}, 3, 1 << 23),
    ],
)
def test_each_field_lies_where_it_should(change: dict, word: int, bits: int) -> None:
    empty = Descriptor(base=GuestAddress(0), last_unit=0, sort=False, return_mode=0)
    plain, changed = d.pack(empty), d.pack(replace(empty, **change))
    assert [a ^ b for a, b in zip(plain, changed, strict=True)] == [
        bits if i == word else 0 for i in range(4)
    ]
    assert d.unpack(changed) == replace(empty, **change)


def test_any_words_of_the_type_round_trip(rng: np.random.Generator) -> None:
    for row in rng.integers(0, 1 << 32, (500, 4), dtype=np.uint32).tolist():
        row[3] = row[3] & 0x0FFFFFFF | 0x80000000
        assert list(d.pack(d.unpack(row))) == row


def test_fields_of_arrays_agree_with_unpack(rng: np.random.Generator) -> None:
    words = rng.integers(0, 1 << 32, (300, 4), dtype=np.uint32)
    words[:, 3] = words[:, 3] & 0x0FFFFFFF | np.uint32(0x80000000)
    for row, base, last, growth, sort in zip(
        words.tolist(),
        *(d.read_field(words, name).tolist() for name in ("base", "last_unit", "growth", "sort")),
        strict=True,
    ):
        found = d.unpack(row)
        assert (found.base >> 8, found.last_unit, found.growth, found.sort) == (
            base, last, growth, sort,
        )  # fmt: skip


def test_agrees_with_the_writer_of_containers() -> None:
    for base, last, growth in ((0, 0, 0), (0x1200, 77, 6), (1 << 40, 1 << 41, 255)):
        ours = d.pack(Descriptor(GuestAddress(base), last, growth))
        assert ours == pack_descriptor(base, last, growth=growth)


@pytest.mark.parametrize("kind", [0, 1, 7, 9, 15])
def test_the_wrong_type_is_refused(kind: int) -> None:
    with pytest.raises(UserError, match=f"type {kind} "):
        d.unpack((0x100, 0, 0x100, kind << 28))


@pytest.mark.parametrize(
    "change",
    [
        {"base": GuestAddress(0x80)},
        {"base": GuestAddress(1 << 48)},
        {"growth": 256},
        {"growth": -1},
        {"last_unit": 1 << 42},
        {"return_mode": 2},
        {"llc_policy": 4},
        {"other": 1},
    ],
)
def test_what_does_not_fit_is_refused(change: dict) -> None:
    with pytest.raises(UserError, match="descriptor"):
        d.pack(replace(FIXTURE, **change))


def test_four_words_it_has_to_be() -> None:
    with pytest.raises(UserError, match="4 words"):
        d.unpack((0, 0, 0))
