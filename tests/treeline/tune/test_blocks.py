"""Gains: of ray types, of all together, and of what is no case."""

from typing import Any

import numpy as np
import pytest

from bvh.blas import BuildOptions
from treeline.tune.agreement import Agreement
from treeline.tune.blocks import Block, Measured, gain, ratio
from treeline.tune.cases import Case, Recipe
from treeline.tune.confirm import confirmation

CASE = Case(Recipe(BuildOptions()))


def measured(**ms: Any) -> Measured:
    return Measured(CASE, ms, {"a": Agreement(9, 0)}, None, {"bvh_bytes": 7.0})


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
    assert ratio(measured(a=[1.0]), refused) == np.inf and not gain(measured(a=[1.0]), refused).won
    block = Block((measured(a=[1.0]), refused), 1.0)
    assert confirmation(block) == {"refused": "its hits differ"}


def test_a_confirmation_has_each_ray_type_and_their_sum() -> None:
    slow = measured(a=[2.0, 2.1, 2.2, 2.0, 2.1, 2.2, 2.1], b=[1.0] * 7)
    fast = measured(a=[1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.1], b=[1.0] * 7)
    found = confirmation(Block((slow, fast), 1.0))
    assert found["rays"]["a"]["default_ms"] == 2.1 and found["rays"]["a"]["tuned_ms"] == 1.1
    assert found["total"]["default_ms"] == 3.1
    assert found["total"]["gain"] == pytest.approx(3.1 / 2.1, rel=0.02)
    assert found["hits"]["a"] == {"rays": 9, "different": 0, "ties": 0}
    assert found["costs"] == {"default": {"bvh_bytes": 7.0}, "tuned": {"bvh_bytes": 7.0}}
    assert (found["rays"]["a"]["result"], found["rays"]["b"]["result"]) == ("faster", "equal")
