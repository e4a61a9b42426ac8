"""Which rays count as different, and how many of them are too many."""

from typing import Any

import numpy as np
import pytest

from bvh.gpu.trace_rays import HIT
from bvh.rays import MISS_ID
from passes.rays import REFLECTION, SHADOW
from treeline.tune.agreement import Agreement, Found, agree, agreement_text


def closest(*rows: tuple[float, int, int], first: int = 0, originals: Any = (0, 1)) -> Found:
    """t, object and primitive of rays in the slots from `first` on."""
    results = np.zeros(len(rows), HIT.dtype)
    for name, column in zip(("t", "object", "primitive"), zip(*rows, strict=True), strict=True):
        results[name] = column
    records = np.zeros(len(rows), REFLECTION.record.dtype)
    records["pixel"] = first + np.arange(len(rows))
    return Found(records, results, np.array(originals))


def any_hit(slots: Any, words: Any) -> Found:
    records = np.zeros(len(slots), SHADOW.record.dtype)
    records["slot"] = slots
    return Found(records, np.array(words, np.uint32), np.arange(2))


def met(ray: Any, found: Found, expected: Found) -> Agreement:
    return agree(ray, found, expected, diagonal=10.0)


HIT_7, MISS = (1.0, 0, 7), (9.0, MISS_ID, 0)


@pytest.mark.parametrize(
    "row, different, ties",
    [
        (HIT_7, 0, 0),
        ((1.00001, 0, 7), 0, 0),
        ((1.000105, 0, 7), 0, 0),  # by the tolerance and the scene's size
        ((1.00012, 0, 7), 1, 0),
        ((1.01, 0, 7), 1, 0),  # the same triangle, somewhere else
        ((1.00001, 0, 8), 0, 1),
        ((1.00001, 1, 7), 0, 1),
        ((1.01, 0, 8), 1, 0),
        (MISS, 1, 0),
    ],
)
def test_closest_hits_are_equal_by_triangle_and_distance(
    row: Any, different: int, ties: int
) -> None:
    expected = closest(HIT_7, HIT_7, MISS)
    found = met(REFLECTION, closest(HIT_7, row, (3.0, MISS_ID, 5)), expected)
    assert found == Agreement(3, different, ties)


def test_objects_are_compared_by_their_place_in_the_scene() -> None:
    """A grouping numbers them anew."""
    expected = closest((1.0, 0, 7), (2.0, 1, 3))
    swapped = closest((1.0, 1, 7), (2.0, 0, 3), originals=(1, 0))
    assert met(REFLECTION, swapped, expected) == Agreement(2, 0, 0)
    wrong = closest((1.0, 1, 7), (2.0, 0, 3))
    assert met(REFLECTION, wrong, expected) == Agreement(2, 0, 2)


def test_a_ray_that_one_frame_alone_sends_is_different() -> None:
    assert met(REFLECTION, closest(HIT_7, HIT_7), closest(HIT_7)) == Agreement(2, 1)
    assert met(REFLECTION, closest(HIT_7), closest(HIT_7, first=4)) == Agreement(2, 2)


def test_any_hits_are_equal_by_their_word() -> None:
    four = np.arange(4)
    lit = np.array([0, 1, 1, 0])
    expected = any_hit(four, lit)
    assert met(SHADOW, any_hit(four, lit), expected) == Agreement(4, 0)
    assert met(SHADOW, any_hit(four[::-1], lit[::-1]), expected) == Agreement(4, 0)
    assert met(SHADOW, any_hit(four, 1 - lit), expected) == Agreement(4, 4)
    assert met(SHADOW, any_hit(four[1:], lit[1:]), expected) == Agreement(4, 1)


def test_over_one_structure_no_ray_may_differ_over_another_one_in_ten_thousand() -> None:
    one = Agreement(10_000, 1)
    assert one.refusal("near", same_structure=False) is None
    assert one.refusal("near", same_structure=True) == "1 of 10,000 near rays hit something else"
    assert "2 of 10,000" in (Agreement(10_000, 2).refusal("near", same_structure=False) or "")
    assert Agreement(50, 1).refusal("near", same_structure=False) is None  # one of few
    assert Agreement(50, 2).refusal("near", same_structure=False) is not None
    ties = Agreement(10_000, 0, 100)
    assert ties.refusal("near", same_structure=True) is None
    wrong = Agreement(10_000, 0, 101).refusal("near", same_structure=False)
    assert wrong == "101 of 10,000 near rays hit another triangle as far away"


def test_the_words_say_how_many_differ() -> None:
    assert agreement_text({"a": Agreement(5, 0), "b": Agreement(7, 0)}) == (
        "all 12 rays hit the same"
    )
    some = {"a": Agreement(1_603_000, 10), "b": Agreement(610, 4)}
    assert agreement_text(some) == (
        "equal but for 14 of 1,603,610 rays, by rounding of placed corners"
    )
