"""Fits of made-up runs: coefficients, their intervals, and those that nothing identifies."""

import math

import numpy as np
import pytest

from engine.gpu.errors import UserError
from treeline.cost_fit import fit_costs

Rng = np.random.Generator
TRUTH = np.array([2e-6, 5e-6, 1e-6])  # ms a count
NAMES = ("rays", "hits", "updates")


def counts(rng: Rng, runs: int = 12) -> np.ndarray:
    return rng.uniform(1e5, 2e6, (runs, 3))


def test_exact_sums_are_found(rng: Rng) -> None:
    x = counts(rng)
    found = fit_costs(x, x @ TRUTH, NAMES)
    assert found.rank == 3 and found.runs == 12
    assert [c.value for c in found.coefficients] == pytest.approx(TRUTH)
    assert found.residual_ms < 1e-9 and found.left_out_ms < 1e-9


def disturbed(rng: Rng, ms: np.ndarray, part: float) -> np.ndarray:
    """Runs that a machine makes longer or shorter by a factor."""
    return ms * np.exp(part * rng.standard_normal(len(ms)))


@pytest.mark.parametrize("part", [0.02, 0.1])
def test_intervals_hold_the_truth(part: float, rng: Rng) -> None:
    """Also over runs of very different lengths, as those at half the size are."""
    held = 0
    for _ in range(150):
        x = counts(rng) * rng.choice([0.2, 0.5, 1.0], (12, 1))
        found = fit_costs(x, disturbed(rng, x @ TRUTH, part), NAMES)
        for c, true in zip(found.coefficients, TRUTH, strict=True):
            assert c.low is not None and c.high is not None
            held += c.low <= true <= c.high
    assert 0.91 * 450 <= held <= 0.985 * 450


def test_the_left_out_error_is_that_of_leaving_out(rng: Rng) -> None:
    """With each run's weight as it is with all of them."""
    x = counts(rng)
    y = disturbed(rng, x @ TRUTH, 0.05)
    found = fit_costs(x, y, NAMES)
    first = np.linalg.lstsq(x / y[:, None], np.ones(12), rcond=None)[0]
    weights = 1 / (x @ first)
    xs, ys = x * weights[:, None], y * weights
    errors = []
    for i in range(12):
        others = np.arange(12) != i
        errors.append(y[i] - x[i] @ np.linalg.lstsq(xs[others], ys[others], rcond=None)[0])
    assert found.left_out_ms == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    assert found.left_out_share == pytest.approx(found.left_out_ms / y.mean())
    assert 0.03 < found.left_out_share < 0.12  # of runs that scatter by 5%
    rest = y - x @ np.linalg.lstsq(xs, ys, rcond=None)[0]
    assert found.residual_ms == pytest.approx(math.sqrt(rest @ rest / 9))  # 12 runs, 3 terms


def test_what_moves_together_is_refused_and_named(rng: Rng) -> None:
    x = counts(rng)
    x[:, 1] = 0.7 * x[:, 0] * (1 + 1e-4 * rng.standard_normal(12))  # hits follow rays
    found = fit_costs(x, x @ TRUTH, NAMES)
    rays, hits, updates = found.coefficients
    assert found.rank == 2
    assert rays.value is hits.value is None
    assert rays.refused == "the runs do not tell it from hits" and "rays" in hits.refused
    assert updates.value == pytest.approx(TRUTH[2], rel=0.01)


def test_what_is_never_there_is_refused(rng: Rng) -> None:
    x = counts(rng)
    x[:, 2] = 0
    found = fit_costs(x, x @ TRUTH, NAMES)
    assert found.coefficients[2].refused == "no run has any updates"
    assert [c.value for c in found.coefficients[:2]] == pytest.approx(TRUTH[:2])
    assert fit_costs(np.zeros((8, 1)), np.ones(8), ("rays",)).rank == 0


def test_rays_hits_and_misses_of_one_sum_are_refused(rng: Rng) -> None:
    hits, misses = rng.uniform(1e5, 1e6, (2, 10))
    x = np.stack([hits + misses, hits, misses], axis=1)
    found = fit_costs(x, x @ TRUTH, ("rays", "hits", "misses"))
    assert found.rank == 2 and all(c.value is None for c in found.coefficients)
    assert found.left_out_ms < 1e-6  # the sum is predicted all the same


def test_what_cannot_be_told_from_nothing_is_refused(rng: Rng) -> None:
    x = counts(rng)
    y = x @ np.array([2e-6, 5e-6, 0.0]) + 0.2 * rng.standard_normal(12)
    rays, hits, updates = fit_costs(x, y - 1e-6 * x[:, 2], NAMES).coefficients
    assert rays.value is not None and hits.value is not None
    assert updates.value is None and updates.refused == "the runs do not tell it from 0"
    assert updates.low is not None and updates.low < -0.8e-6


def test_a_term_that_one_run_alone_shows_is_refused(rng: Rng) -> None:
    """It leaves the sum, which then has an error that can be seen: that run's."""
    x = counts(rng)
    x[1:, 2] = 0
    y = x @ TRUTH
    found = fit_costs(x, y, NAMES)
    rays, hits, updates = found.coefficients
    assert updates.value is None
    assert updates.refused.startswith("one run alone decides it (evidence of 1.")
    assert rays.value == pytest.approx(TRUTH[0], rel=0.3) and hits.value is not None
    assert found.rank == 2 and math.isfinite(found.left_out_ms)
    assert max(found.left_out, key=abs) == found.left_out[0]
    # Three of them are enough, if they show as much.
    x[1:4, 2] = x[0, 2] = 1e6
    found = fit_costs(x, x @ TRUTH, NAMES)
    assert [c.value for c in found.coefficients] == pytest.approx(TRUTH)
    assert found.left_out_ms < 1e-9


def test_too_few_runs_and_no_numbers(rng: Rng) -> None:
    x = counts(rng, 7)
    with pytest.raises(UserError, match="needs 8 runs or more, there are 7"):
        fit_costs(x, x @ TRUTH, NAMES)
    x = counts(rng)
    x[3, 1] = np.nan
    with pytest.raises(UserError, match="no number"):
        fit_costs(x, np.ones(12), NAMES)
