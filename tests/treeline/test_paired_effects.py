"""Effects, noise and interactions of made-up runs whose truth is known."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from treeline.ablation_table import parse_table
from treeline.paired_effects import (
    FEWEST_PAIRS,
    interaction,
    noise_ms,
    paired_effect,
    switch_fields,
    undeclared_changes,
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
    effect = paired_effect(values, np.zeros(n))
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
        on, off = (runs(rng, 5.0, np.ones(16)) for _ in range(2))
        above += abs(np.median(on) - np.median(off)) > noise_ms(on)
    assert 8 <= above <= 60  # 20 expected; the spread itself is estimated from 16 runs
    assert noise_ms([3.0, 3.0, 3.0]) == 0


def test_interactions(rng: Rng) -> None:
    drift = 1 + 0.1 * np.sin(np.arange(16))

    def series(a: bool, b: bool, overlap: float) -> Any:
        return runs(rng, 8 - 2 * a - 3 * b + overlap * (a and b), drift, 0.005)

    for overlap in (0.0, 1.5):
        four = [series(a, b, overlap) for a, b in ((0, 0), (1, 0), (0, 1), (1, 1))]
        found = interaction(*four)
        assert found.low <= -overlap <= found.high and found.high - found.low < 0.3
        assert found.certain == (overlap > 0)


def test_other_terms_must_stay(rng: Rng) -> None:
    on = {term: runs(rng, 2.0, np.ones(10)) for term in ("rays", "nodes", "any-hit")}
    off = {term: runs(rng, 2.0, np.ones(10)) for term in on}
    off["rays"] *= 0.5
    assert undeclared_changes(on, off, "rays") == {}
    off["nodes"] *= 1.2
    found = undeclared_changes(on, off, "rays")
    assert list(found) == ["nodes"] and found["nodes"].ms == pytest.approx(-0.4, abs=0.05)


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
