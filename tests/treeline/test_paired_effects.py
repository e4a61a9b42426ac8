"""Effects, noise and interactions of made-up runs whose truth is known."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from treeline.ablation_table import parse_table
from treeline.paired_effects import (
    FEWEST_PAIRS,
    certain_change,
    estimate,
    interaction,
    noise_ms,
    paired_effect,
    switch_fields,
)
from treeline.verdict import verdict

Rng = np.random.Generator


def runs(rng: Rng, ms: float, drift: Any, spread: float = 0.02) -> Any:
    """Runs of `ms` that vary by `spread`, on a machine whose speed drifts."""
    return ms * drift * (1 + spread * rng.standard_normal(len(drift)))


def test_the_interval_holds_the_truth_whatever_drifts(rng: Rng) -> None:
    held = excludes_zero = 0
    for _ in range(200):
        drift = 1 + 0.3 * np.linspace(0, 1, 15)
        on, off = runs(rng, 4.0, drift), runs(rng, 3.8, drift)
        effect = paired_effect(on, off)
        assert effect.low <= effect.ms <= effect.high and effect.pairs == 15
        held += effect.low <= 0.2 * 1.15 <= effect.high  # by the mean speed
        excludes_zero += effect.certain
    assert held >= 182 and excludes_zero > 190


@pytest.mark.parametrize("n", [6, 9, 20])
def test_the_interval_is_what_the_signed_rank_test_leaves(n: int) -> None:
    values = np.arange(1, n + 1) + 0.01 * np.arange(n) ** 2
    effect = estimate(values)
    for end, outward in ((effect.low, -1e-6), (effect.high, 1e-6)):
        for shift, rejected in ((end + outward, True), (end - outward, False)):
            p = stats.wilcoxon(values - shift, method="exact").pvalue
            assert (p <= 0.05) == rejected, (n, shift, p)


def test_one_slow_run_moves_little(rng: Rng) -> None:
    on, off = runs(rng, 4.0, np.ones(12)), runs(rng, 3.0, np.ones(12))
    calm = paired_effect(on, off)
    on[3] *= 10
    assert paired_effect(on, off).ms == pytest.approx(calm.ms, abs=0.05)


def test_noise_is_what_equal_runs_differ_by(rng: Rng) -> None:
    above = 0
    for _ in range(400):
        drift = np.exp(rng.normal(0, 0.5, 16))  # which meets both of a pair
        on, off = runs(rng, 5.0, drift), runs(rng, 5.0, drift)
        above += abs(paired_effect(on, off).ms) > noise_ms(on, off)
    assert 8 <= above <= 60  # 20 expected; the spread itself is estimated from 16 pairs
    assert noise_ms([3.0, 3.0, 3.0], [2.0, 2.0, 2.0]) == 0


def test_a_busy_machine_makes_no_effect_larger(rng: Rng) -> None:
    """Runs under load take four times as long, both of a pair: the effect is that of a usual pair,
    as sharp as without."""
    load = np.where(np.arange(12) % 4 == 3, 4.0, 1.0)
    effect = paired_effect(runs(rng, 4.0, load), runs(rng, 3.8, load))
    assert 0.1 < effect.ms < 0.3 and effect.high - effect.low < 0.25 and effect.certain


def test_interactions(rng: Rng) -> None:
    drift = 1 + 0.1 * np.sin(np.arange(16))

    def series(a: bool, b: bool, overlap: float) -> Any:
        return runs(rng, 8 - 2 * a - 3 * b + overlap * (a and b), drift, 0.005)

    for overlap in (0.0, 1.5):
        four = [series(a, b, overlap) for a, b in ((0, 0), (1, 0), (0, 1), (1, 1))]
        found = interaction(*four)
        assert found.low <= -overlap <= found.high and found.high - found.low < 0.3
        assert found.certain == (overlap > 0)


@pytest.mark.parametrize("n", [6, 12])
def test_a_change_is_certain_over_many_questions(n: int, rng: Rng) -> None:
    equal = [certain_change(runs(rng, 2.0, np.ones(n)), runs(rng, 2.0, np.ones(n)), 50)]
    for _ in range(2000):
        drift = np.exp(rng.normal(0, 0.3, n))
        equal.append(certain_change(runs(rng, 2.0, drift), runs(rng, 2.0, drift), 50))
    assert np.count_nonzero(equal) <= 8  # 2 expected of 2001, at 5% of 50
    slower = certain_change(runs(rng, 2.0, np.ones(n)), runs(rng, 2.6, np.ones(n)), 50)
    assert 0.1 < slower < 0.32
    faster = certain_change(runs(rng, 2.0, np.ones(n)), runs(rng, 1.0, np.ones(n)), 50)
    assert -0.52 < faster < -0.4
    on = runs(rng, 2.0, np.ones(n))
    on[2] *= 10  # one run that was interrupted
    assert certain_change(on, runs(rng, 2.0, np.ones(n)), 50) == 0
    assert certain_change(np.zeros(n), np.zeros(n), 50) == 0


def test_a_measured_table_is_read_and_judged(rng: Rng) -> None:
    base = runs(rng, 6.8, np.ones(12))
    switches = {
        "characters": switch_fields(base, runs(rng, 6.75, np.ones(12))),
        "foliage": switch_fields(base, runs(rng, 3.2, np.ones(12))),
        "half_resolution": switch_fields(base, runs(rng, 2.0, np.ones(12)), ray_ratio=0.25),
    }
    found = verdict(parse_table({"base_ms": 6.8, "switches": switches}))
    ranks = {f.cause: f.rank for f in found.findings}
    assert list(ranks.items()) == [
        ("ray_count", "primary"),
        ("foliage_any_hit", "primary"),
        ("characters_update", "minor"),
    ]
    interval = found.findings[1].interval_ms
    assert interval is not None and interval[0] < 3.6 < interval[1]


def test_too_few_pairs() -> None:
    with pytest.raises(ValueError, match=f"5 pairs: an interval needs {FEWEST_PAIRS}"):
        paired_effect(np.ones(5), np.ones(5))
