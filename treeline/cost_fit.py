"""The coefficients of a cost that is a sum of counts, fitted over many runs, with what they are
worth: the rank of the runs, an interval for each coefficient, and the error on a run left out.

time = sum over terms of count * coefficient. A coefficient that the runs cannot tell from others,
because their counts went up and down together, is refused and named with them: least squares would
give it some value all the same. So is one that a single run decides: its error could not be
seen. Such terms leave the sum. Columns are scaled before rank and condition are judged.

What disturbs a run makes it longer by a factor: a run counts by its error as a part of what it is
expected to take. By milliseconds the longest runs alone would decide, and intervals be too narrow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.gpu.errors import UserError
from treeline.fit_design import (
    FEWEST_DECIDING,
    MAX_CONDITION,
    SHORTEST_PART,
    deciding_runs,
    rank_of,
)
from treeline.student import quantile

F64 = NDArray[np.float64]

FEWEST_RUNS = 8
INVOLVED = 0.1  # part of such a direction from which a term takes part in it


@dataclass(frozen=True, slots=True)
class Coefficient:
    """Milliseconds a count, `low` and `high` at 95%; None and `refused` says why, where the runs
    do not identify it: its count is never there, goes with others, or its interval holds 0."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class CostFit:
    """`residual_ms` is the root mean square over the runs (degrees of freedom taken off),
    `left_out_ms` the same over runs predicted from the others, `left_out_share` that of the mean
    time; infinite where a run alone says what a coefficient is. `left_out` [runs] are these errors,
    measured - predicted."""

    coefficients: tuple[Coefficient, ...]
    rank: int
    runs: int
    residual_ms: float
    left_out_ms: float
    left_out_share: float
    left_out: tuple[float, ...]


def fit_costs(counts: ArrayLike, times: ArrayLike, names: Sequence[str]) -> CostFit:
    """Fits `times` [runs] in ms over `counts` [runs, terms]. UserError for fewer than FEWEST_RUNS,
    and where a number is not finite."""
    x, y = np.asarray(counts, np.float64), np.asarray(times, np.float64)
    runs = len(y)
    if runs < FEWEST_RUNS:
        raise UserError(f"a cost model needs {FEWEST_RUNS} runs or more, there are {runs}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise UserError("a run has a time or a count that is no number")
    each_ms = _expected(x, y)
    x, parts = x / each_ms[:, None], y / each_ms
    kept, few = _decided(x)
    coefficients = {i: Coefficient(names[i], None, refused=why) for i, why in few.items()}
    x = x[:, kept]
    lengths = np.linalg.norm(x, axis=0)
    scale = np.where(lengths > 0, lengths, 1.0)
    left, strength, directions = np.linalg.svd(x / scale, full_matrices=False)
    rank = rank_of(strength)
    left, strength, strong = left[:, :rank], strength[:rank], directions[:rank]
    values = (strong.T / strength) @ (left.T @ parts) / scale
    residuals = parts - left @ (left.T @ parts)
    free = max(1, runs - rank)
    sigma = math.sqrt(float((residuals**2).sum()) / free)
    errors = sigma * np.sqrt(((strong.T / strength) ** 2).sum(axis=1)) / scale
    reach = quantile(free) * errors
    told = [names[i] for i in kept]
    for place, i in enumerate(kept):
        found = float(values[place]), float(reach[place])
        coefficients[i] = _coefficient(told, place, lengths, directions[rank:], *found)
    residual_ms = math.sqrt(float(((residuals * each_ms) ** 2).sum()) / free)
    errors_left_out = _left_out(residuals, (left**2).sum(axis=1)) * each_ms
    left_out = float(np.sqrt(np.mean(errors_left_out**2)))
    mean = float(y.mean())
    share = left_out / mean if mean > 0 else math.inf
    each = tuple(errors_left_out.tolist())
    in_order = tuple(coefficients[i] for i in range(len(names)))
    return CostFit(in_order, rank, runs, residual_ms, left_out, share, each)


def _decided(x: F64) -> tuple[list[int], dict[int, str]]:
    """Columns of `x` that stay in the sum, and of the others why not: those that the fewest runs
    decide go first, until each of the rest is decided by enough."""
    kept, refused = list(range(x.shape[1])), {}
    while kept:
        runs = deciding_runs(x[:, kept])
        # None at all is another matter: the count is never there, or goes with others.
        few = [place for place in range(len(kept)) if 0 < runs[place] < FEWEST_DECIDING]
        if not few:
            break
        worst = min(few, key=lambda place: runs[place])
        refused[kept.pop(worst)] = f"one run alone decides it (evidence of {runs[worst]:.2f} runs)"
    return kept, refused


def _expected(x: F64, y: F64) -> F64:
    """[runs] what each run takes by the others' measure: a first fit, whose runs count by what they
    took."""
    least = SHORTEST_PART * float(y.max())
    if least <= 0:
        return np.ones(len(y))
    took = np.maximum(y, least)
    first = np.linalg.lstsq(x / took[:, None], y / took, rcond=1 / MAX_CONDITION)[0]
    return np.asarray(np.maximum(x @ first, least))


def _coefficient(
    names: Sequence[str], index: int, lengths: F64, weak: F64, value: float, reach: float
) -> Coefficient:
    name = names[index]
    if lengths[index] == 0:
        return Coefficient(name, None, refused=f"no run has any {name}")
    confounded = weak[np.abs(weak[:, index]) > INVOLVED]
    if len(confounded):
        others = [
            other
            for i, other in enumerate(names)
            if i != index and (np.abs(confounded[:, i]) > INVOLVED).any()
        ]
        return Coefficient(name, None, refused=f"the runs do not tell it from {', '.join(others)}")
    low, high = value - reach, value + reach
    if low <= 0 <= high or high < 0:  # nothing costs less than nothing
        return Coefficient(name, None, low, high, "the runs do not tell it from 0")
    return Coefficient(name, value, low, high)


def _left_out(residuals: F64, leverage: F64) -> F64:
    """[runs] each run's error when it is predicted from the others: for least squares its residual
    by (1 - leverage) (Allen's PRESS); infinite where the others do not say what it takes."""
    if (leverage > 1 - 1e-9).any():
        return np.full(len(residuals), np.inf)
    return np.asarray(residuals / (1 - leverage), np.float64)
