"""Effects of switches from interleaved runs: on, off, on, off, so that what the machine does
meanwhile (clock, heat, others) meets both.

What a machine does makes runs longer by a factor, not by so many milliseconds: each pair's
difference is taken as a part of both runs' sum, and the effect given at the median sum. It is the
Hodges-Lehmann estimate of these: the median of all their pairwise means, with the exact interval of
the signed-rank test (Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", sections 3.1
to 3.3). It assumes that differences are symmetric, not that they are normal, and one frame that
took ten times as long hardly moves it. Times are milliseconds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treeline.student import quantile

F64 = NDArray[np.float64]

COVERAGE = 0.95
FEWEST_PAIRS = 6  # fewer have no interval of that coverage
_Z = 1.959964  # of COVERAGE
_MAD_TO_SIGMA = 1.4826  # standard deviation of normal values by their median deviation
_EFFICIENCY = 0.955  # variance of a mean of normal values by that of the Hodges-Lehmann estimate


@dataclass(frozen=True, slots=True)
class Effect:
    """`ms` is on - off: what switching off saves; `low` and `high` hold it."""

    ms: float
    low: float
    high: float
    pairs: int

    @property
    def certain(self) -> bool:
        """Whether it differs from nothing."""
        return self.low > 0 or self.high < 0


def paired_effect(on: ArrayLike, off: ArrayLike) -> Effect:
    """The effect from runs [n] on and off, pair by pair. ValueError below FEWEST_PAIRS."""
    return _relative_effect([np.asarray(on, np.float64), np.asarray(off, np.float64)], (1, -1))


def interaction(
    base: ArrayLike, without_a: ArrayLike, without_b: ArrayLike, without_both: ArrayLike
) -> Effect:
    """What two switches save together beyond the sum of both, from four interleaved series [n]:
    negative where they overlap."""
    series = [np.asarray(s, np.float64) for s in (base, without_a, without_b, without_both)]
    return _relative_effect(series, (-1, 1, 1, -1))  # (base - both) - (base - a) - (base - b)


def _relative_effect(series: Sequence[F64], signs: Sequence[int]) -> Effect:
    """Of the signed sum of the series [n], at the median of their sum."""
    sums = np.sum(series, axis=0)
    signed = np.sum([sign * values for sign, values in zip(signs, series, strict=True)], axis=0)
    parts = np.divide(signed, sums, out=np.zeros_like(sums), where=sums > 0)
    found, typical = estimate(parts), float(np.median(sums))
    return Effect(typical * found.ms, typical * found.low, typical * found.high, found.pairs)


def estimate(differences: F64) -> Effect:
    """Where differences [n] lie, in any unit. ValueError below FEWEST_PAIRS."""
    n = len(differences)
    if n < FEWEST_PAIRS:
        raise ValueError(f"{n} pairs: an interval needs {FEWEST_PAIRS}")
    first, second = np.triu_indices(n)
    means = np.sort((differences[first] + differences[second]) / 2)
    cut = signed_rank_cut(n)
    return Effect(float(np.median(means)), float(means[cut]), float(means[-1 - cut]), n)


def signed_rank_cut(n: int) -> int:
    """How many of the sorted pairwise means lie outside the interval on each side. A shift with k
    means below it has the rank sum k, and is rejected while sums up to k are no likelier than half
    of 1 - COVERAGE: the interval begins at the mean that ends the last rejected gap."""
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1
    for rank in range(1, n + 1):
        counts[rank:] += counts[:-rank].copy()
    below = np.cumsum(counts) / counts.sum()
    return int(np.searchsorted(below, (1 - COVERAGE) / 2, side="right")) - 1


def noise_ms(on: ArrayLike, off: ArrayLike) -> float:
    """What an effect of pairs [n] that scatter like these comes to at most, with COVERAGE, where
    nothing differs: effects up to this are none. What the machine does to both of a pair is not in
    it."""
    before, after = np.asarray(on, np.float64), np.asarray(off, np.float64)
    sums = before + after
    parts = np.divide(before - after, sums, out=np.zeros_like(sums), where=sums > 0)
    return float(np.median(sums)) * noise_of(parts)


def noise_of(differences: F64) -> float:
    """The same of differences [n] in any unit."""
    middle = np.median(differences)
    sigma = _MAD_TO_SIGMA * float(np.median(np.abs(differences - middle)))
    return _Z * sigma / math.sqrt(_EFFICIENCY * len(differences))


def certain_change(on: ArrayLike, off: ArrayLike, tests: int) -> float:
    """What is certain of the change from runs on [n] to off [n], as a part of what it was: the end
    of its interval that is nearer to nothing, 0 where that holds nothing. `tests` questions of this
    kind share what may go wrong by chance (Bonferroni). By Student's t over the pairs' parts, which
    lie within -1 and 1: ranks of so few pairs could not be as certain as that."""
    before, after = np.asarray(on, np.float64), np.asarray(off, np.float64)
    sums, n = before + after, len(before)
    parts = np.divide(after - before, sums, out=np.zeros_like(sums), where=sums > 0)
    coverage = 1 - (1 - COVERAGE) / max(1, tests)
    reach = quantile(n - 1, coverage) * float(parts.std(ddof=1)) / math.sqrt(n)
    middle = float(parts.mean())
    part = max(middle - reach, 0.0) + min(middle + reach, 0.0)
    if not before.any():
        return float(after.any())  # of what was nothing
    return 2 * part / max(1 - part, 1e-9)  # after / before - 1


def switch_fields(on: ArrayLike, off: ArrayLike, ray_ratio: float | None = None) -> dict[str, Any]:
    """One of a table's `switches` (treeline/ablation_table.py), from its interleaved runs.
    `ray_ratio` of the rays are left when it is off."""
    effect = paired_effect(on, off)
    fields = {
        "off_ms": float(np.median(np.asarray(off, np.float64))),
        "on_ms": float(np.median(np.asarray(on, np.float64))),
        "effect_ms": effect.ms,
        "interval_ms": [effect.low, effect.high],
        "noise_ms": noise_ms(on, off),
    }
    return fields if ray_ratio is None else {**fields, "ray_ratio": ray_ratio}
