"""Gains, and which rays count as different."""

from typing import Any

import numpy as np
import pytest

from bvh.blas import BuildOptions
from bvh.gpu.trace_rays import HIT
from bvh.rays import MISS_ID
from passes.rays import REFLECTION, SHADOW
from treeline.tune.blocks import Block, Measured, gain, ratio
from treeline.tune.cases import Case
from treeline.tune.confirm import confirmation
from treeline.tune.measure import count_different

CASE = Case(BuildOptions())


def measured(**ms: Any) -> Measured:
    return Measured(CASE, ms, {"a": 0})


def test_a_gain_is_how_many_times_faster_turn_by_turn(rng: Any) -> None:
    drift = np.exp(rng.normal(0, 0.5, 20))  # meets both alike
    noise = 1 + rng.normal(0, 0.01, (2, 20))
    slow, fast = measured(a=6 * drift * noise[0]), measured(a=5 * drift * noise[1])
    found = gain(fast, slow)
    assert found.won and found.low < 1.2 < found.high and found.high / found.low < 1.03
    back = gain(slow, fast)
    assert back.certain and not back.won and back.ratio == pytest.approx(1 / found.ratio)
    assert ratio(fast, slow) == pytest.approx(5 / 6, rel=0.01)


def test_all_ray_types_together_are_the_sum_of_their_times() -> None:
    one, other = measured(a=[9.0] * 6, b=[1.0] * 6), measured(a=[8.0] * 6, b=[4.0] * 6)
    assert ratio(other, one) == pytest.approx(1.2)
    assert ratio(other, one, "b") == pytest.approx(4.0)


def test_a_case_that_is_refused_has_no_gain() -> None:
    refused = Measured(CASE, {}, {}, "its hits differ")
    assert ratio(refused, measured(a=[1.0])) == np.inf
    assert not gain(refused, measured(a=[1.0])).won
    block = Block((measured(a=[1.0]), refused), 1.0)
    assert confirmation(block) == {"refused": "its hits differ"}


def test_a_confirmation_has_each_ray_type_and_their_sum() -> None:
    slow = measured(a=[2.0, 2.1, 2.2, 2.0, 2.1, 2.2, 2.1], b=[1.0] * 7)
    fast = measured(a=[1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.1], b=[1.0] * 7)
    found = confirmation(Block((slow, fast), 1.0))
    assert found["rays"]["a"]["default_ms"] == 2.1 and found["rays"]["a"]["tuned_ms"] == 1.1
    assert found["total"]["default_ms"] == 3.1
    assert found["total"]["gain"] == pytest.approx(3.1 / 2.1, rel=0.02)
    assert (found["rays"]["a"]["result"], found["rays"]["b"]["result"]) == ("faster", "equal")


def hits(*rows: tuple[float, int, int]) -> Any:
    found = np.zeros(len(rows), HIT.dtype)
    for name, column in zip(("t", "object", "primitive"), zip(*rows, strict=True), strict=True):
        found[name] = column
    return found


def test_closest_hits_are_equal_by_primitive_or_by_distance() -> None:
    slots = np.arange(6, dtype=np.uint32)
    miss, other_miss = (9, MISS_ID, 0), (9, MISS_ID, 1)
    a = hits((1, 0, 7), (1, 0, 7), (1, 0, 7), (1, 0, 7), miss, (1, 0, 7))
    b = hits((1, 0, 7), (1.01, 0, 7), (1.00001, 1, 7), (1.01, 0, 8), other_miss, (9, MISS_ID, 0))
    assert count_different(REFLECTION, (slots, b), (slots, a)) == 2
    assert count_different(REFLECTION, (slots[1:], b[1:]), (slots, a)) == 3


def test_any_hits_are_equal_by_their_word() -> None:
    slots, lit = np.arange(4, dtype=np.uint32), np.array([0, 1, 1, 0], np.uint32)
    assert count_different(SHADOW, (slots, lit), (slots, lit)) == 0
    assert count_different(SHADOW, (slots, 1 - lit), (slots, lit)) == 4
    assert count_different(SHADOW, (slots[1:], lit[1:]), (slots, lit)) == 1
    assert count_different(SHADOW, (slots[::-1], lit[::-1]), (slots[1:], lit[1:])) == 1
