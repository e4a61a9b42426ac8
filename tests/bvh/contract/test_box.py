"""The box test: growth, extent, sorting and NaN, by hand and against exact fractions."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bvh.contract.box import box_distances, intersect_boxes
from bvh.contract.half import pack_bounds

INVALID = 0xFFFFFFFF
CHILDREN = (0x88, 0x90, 0x98, 0xA0)


def node(boxes: Any, children: Any = CHILDREN) -> np.ndarray:
    """An FP32 node [1, 32] of four (min xyz, max xyz)."""
    words = np.zeros((1, 32), np.uint32)
    words[0, :4] = children
    words[0, 4:28] = np.array(boxes, np.float32).reshape(-1).view(np.uint32)
    return words


def boxes_at(*depths: float) -> list[list[float]]:
    """Boxes of depth 1 that a ray along +Z from zero enters at these distances."""
    return [[-1, -1, z, 1, 1, z + 1] for z in depths]


def shoot(
    words: np.ndarray,
    rules: Any,
    *,
    extent: float = 6.0,
    origin: Any = (0, 0, 0),
    inverse: Any = (np.inf, np.inf, 1),
    growth: int = 0,
    sort: bool = True,
    half: bool = False,
) -> list[int]:
    return intersect_boxes(
        words,
        np.array([half]),
        np.array([extent], np.float32),
        np.array([origin], np.float32),
        np.array([inverse], np.float32),
        np.array([growth], np.uint32),
        np.array([sort]),
        rules,
    )[0].tolist()


@pytest.mark.parametrize("rules", ["chapter", "gpurt"])
def test_sorted_near_to_far(rules: Any) -> None:
    words = node(boxes_at(5, 1, 3, 7))
    assert shoot(words, rules) == [0x90, 0x98, 0x88, INVALID]
    assert shoot(words, rules, sort=False) == [0x88, 0x90, 0x98, INVALID]


@pytest.mark.parametrize("rules", ["chapter", "gpurt"])
def test_halves_give_the_same_words(rules: Any) -> None:
    full = node(boxes_at(5, 1, 3, 7))
    packed = np.zeros((1, 32), np.uint32)
    packed[0, :4] = CHILDREN
    bounds = full[0, 4:28].view(np.float32).reshape(4, 2, 3)
    packed[0, 4:16] = pack_bounds(bounds[:, 0], bounds[:, 1]).reshape(-1)
    assert shoot(packed, rules, half=True) == shoot(full, rules)


def test_extent_at_the_nearest_entry() -> None:
    words = node(boxes_at(5, 1, 3, 7))
    assert shoot(words, "chapter", extent=1) == [INVALID] * 4
    assert shoot(words, "gpurt", extent=1) == [0x90, INVALID, INVALID, INVALID]


def test_growth() -> None:
    # Along the diagonal the box is entered one ULP behind its exit.
    above = float(np.nextafter(np.float32(1), np.float32(2)))
    words = node([[above, 0, 0, 2, 1, 1], *[[9, 9, 9, 8, 8, 8]] * 3])
    diagonal = {"inverse": (1, 1, 1), "extent": 10.0}
    hits = {
        (rules, growth): shoot(words, rules, growth=growth, **diagonal)[0] == 0x88
        for rules in ("chapter", "gpurt")
        for growth in (0, 1, 2, 6)
    }
    # 1 + 2^-24 rounds to 1, so growth 1 does nothing in gpurt.
    assert hits == {
        ("chapter", 0): False, ("chapter", 1): True, ("chapter", 2): True, ("chapter", 6): True,
        ("gpurt", 0): False, ("gpurt", 1): False, ("gpurt", 2): True, ("gpurt", 6): True,
    }  # fmt: skip


def test_ties_keep_their_order_unless_a_miss_stands_in_front() -> None:
    nested = [[-1, -1, -1, 1, 1, 5]] * 4
    for rules in ("chapter", "gpurt"):
        assert shoot(node(nested), rules) == list(CHILDREN)  # type: ignore[arg-type]
    missed_first = [[2, 2, 2, 3, 3, 3], *nested[:3]]
    # (0,1)(2,3)(0,2)(1,3)(1,2) by hand with keys inf 0 0 0: swap 0,1; then 1,3; nothing else.
    assert shoot(node(missed_first), "chapter") == [0x90, 0xA0, 0x98, INVALID]
    # (0,2)(1,3)(0,1)(2,3)(1,2): slot 0 is empty: swap 0,2; then 2,3.
    assert shoot(node(missed_first), "gpurt") == [0x98, 0x90, 0xA0, INVALID]


def test_zero_bounds_of_an_empty_slot_can_be_hit() -> None:
    words = node(
        [[0, 0, 0, 0, 0, 0], [-1, -1, 2, 1, 1, 3], [0] * 6, [0] * 6],
        (INVALID, 0x90, INVALID, INVALID),
    )
    # The keys of the empty slots are 0: the chapter sorts them in front of the real child.
    assert shoot(words, "chapter") == [INVALID, INVALID, INVALID, 0x90]
    assert shoot(words, "gpurt") == [0x90, INVALID, INVALID, INVALID]


@pytest.mark.parametrize("rules", ["chapter", "gpurt"])
def test_nan_bounds_miss_and_a_ray_in_a_plane_hits(rules: Any) -> None:
    nan = np.float32(np.nan)
    words = node([[0, -1, 2, 1, 1, 3], *[[nan] * 6] * 3], (0x10, INVALID, INVALID, INVALID))
    # The origin lies in the plane x = 0 and the ray runs along it: 0 * infinity is ignored.
    assert shoot(words, rules) == [0x10, INVALID, INVALID, INVALID]


def test_one_nan_corner_is_ignored_and_all_nan_is_a_miss() -> None:
    nan = np.float32(np.nan)
    words = node([[nan, -1, 2, 1, 1, 3], [nan, nan, nan, 1, 1, 3], *[[2, 2, 2, 3, 3, 3]] * 2])
    assert shoot(words, "gpurt") == [0x88, INVALID, INVALID, INVALID]
    assert shoot(words, "chapter") == [0x88, INVALID, INVALID, INVALID]


def test_behind_and_around_the_origin() -> None:
    words = node(boxes_at(-5, -0.5, 2, 3))
    for rules in ("chapter", "gpurt"):
        assert shoot(words, rules) == [0x90, 0x98, 0xA0, INVALID]  # type: ignore[arg-type]


@pytest.mark.parametrize("rules", ["chapter", "gpurt"])
def test_minus_zero_counts_as_forward(rules: Any) -> None:
    words = node(boxes_at(5, 1, 3, 7))
    assert shoot(words, rules, inverse=(-np.inf, -np.inf, 1)) == [0x90, 0x98, 0x88, INVALID]
    # An inverse of -0 is "forward": both planes are at t = -0, so only boxes around t = 0 hit.
    around = node([[-1, -1, -1, 1, 1, 1], *boxes_at(1, 3, 5)])
    assert shoot(around, rules, inverse=(-0.0, 0.0, 1))[0] == 0x88


def test_distances_against_fractions(rng: np.random.Generator) -> None:
    # Small integers over powers of two: every operation is exact, so the answer is too.
    low = rng.integers(-16, 16, (200, 4, 3)) / 8
    size = rng.integers(0, 16, (200, 4, 3)) / 8
    origin = rng.integers(-16, 16, (200, 3)) / 4
    inverse = rng.choice([-1, 1], (200, 3)) * 2.0 ** rng.integers(-2, 3, (200, 3))
    words = np.concatenate([node(box) for box in np.concatenate([low, low + size], -1)])
    entry, exit_ = box_distances(
        words, np.zeros(200, np.bool_), origin.astype(np.float32), inverse.astype(np.float32)
    )
    for i in range(200):
        for slot in range(4):
            spans = [
                sorted(
                    (Fraction(float(plane)) - Fraction(float(origin[i, axis])))
                    * Fraction(float(inverse[i, axis]))
                    for plane in (low[i, slot, axis], low[i, slot, axis] + size[i, slot, axis])
                )
                for axis in range(3)
            ]
            assert Fraction(float(entry[i, slot])) == max(span[0] for span in spans)
            assert Fraction(float(exit_[i, slot])) == min(span[1] for span in spans)
