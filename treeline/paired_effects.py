"""Effects of switches from interleaved runs: on, off, on, off, so that what the machine does
meanwhile (clock, heat, others) meets both.

An effect is the Hodges-Lehmann estimate of the pairs' differences: the median of all their pairwise
means, with the exact interval of the signed-rank test (Hollander, Wolfe, Chicken, "Nonparametric
Statistical Methods", sections 3.1 to 3.3). It assumes that differences are symmetric, not that they
are normal, and one frame that took ten times as long hardly moves it. Times are milliseconds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

F64 = NDArray[np.float64]

COVERAGE = 0.95
FEWEST_PAIRS = 6  # fewer have no interval of that coverage
_Z = 1.959964  # of COVERAGE
# Standard deviation of normal values by their median deviation; of a median by that of a mean.
_MAD_TO_SIGMA, _MEDIAN_TO_MEAN = 1.4826, 1.2533


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
    return _estimate(np.asarray(on, np.float64) - np.asarray(off, np.float64))


def interaction(
    base: ArrayLike, without_a: ArrayLike, without_b: ArrayLike, without_both: ArrayLike
) -> Effect:
    """What two switches save together beyond the sum of both, from four interleaved series [n]:
    negative where they overlap."""
    base, a, b, both = (
        np.asarray(series, np.float64) for series in (base, without_a, without_b, without_both)
    )
    return _estimate((base - both) - (base - a) - (base - b))


def _estimate(differences: F64) -> Effect:
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


def noise_ms(on: ArrayLike) -> float:
    """What the medians of two sets of runs like these differ by at most, with COVERAGE, where
    nothing differs: effects up to this are none."""
    values = np.asarray(on, np.float64)
    sigma = _MAD_TO_SIGMA * float(np.median(np.abs(values - np.median(values))))
    return _Z * math.sqrt(2 / len(values)) * _MEDIAN_TO_MEAN * sigma


def undeclared_changes(
    on: Mapping[str, ArrayLike], off: Mapping[str, ArrayLike], declared: str
) -> dict[str, Effect]:
    """The cost terms that changed though the switch claims only `declared`: term -> effect, of
    those whose interval excludes 0 by more than noise."""
    found = {}
    for term in on:
        if term == declared:
            continue
        effect = paired_effect(on[term], off[term])
        if effect.certain and abs(effect.ms) > noise_ms(on[term]):
            found[term] = effect
    return found


def switch_fields(on: ArrayLike, off: ArrayLike, ray_ratio: float | None = None) -> dict[str, Any]:
    """One of a table's `switches` (treeline/ablation_table.py), from its interleaved runs.
    `ray_ratio` of the rays are left when it is off. `on_ms` is such that on_ms - off_ms is the
    effect."""
    effect = paired_effect(on, off)
    off_ms = float(np.median(np.asarray(off, np.float64)))
    fields = {
        "off_ms": off_ms,
        "on_ms": max(0.0, off_ms + effect.ms),
        "interval_ms": [effect.low, effect.high],
        "noise_ms": noise_ms(on),
    }
    return fields if ray_ratio is None else {**fields, "ray_ratio": ray_ratio}
