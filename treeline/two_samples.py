"""Whether one set of repetitions is slower than another, and by how much.

The size of the change is the ratio of the medians with a bootstrap interval (percentiles, after
Efron and Tibshirani, "An Introduction to the Bootstrap", section 13.3). That there is a change at
all is asked by ranks (Mann and Whitney 1947), which no outlier can move far: exact where there are
few repetitions without ties, else by the normal approximation with its corrections for ties and
continuity.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

RESAMPLES = 4000
COVERAGE = 0.95
EXACT_PRODUCT = 900  # of both counts, up to which ranks are counted exactly: 30 and 30 frames


@dataclass(frozen=True, slots=True)
class Change:
    """`ratio` is median(b) / median(a), held by `low` and `high` at COVERAGE. `p_slower` is how
    likely ranks like these or further apart are where b is not slower than a; `p_faster` where it
    is not faster."""

    ratio: float
    low: float
    high: float
    p_slower: float
    p_faster: float


def compare_samples(a: F64, b: F64, rng: np.random.Generator) -> Change:
    """The change from repetitions `a` [n] to `b` [m], positive times in any unit."""
    ratios = resampled_medians(b, rng) / resampled_medians(a, rng)
    tail = 100 * (1 - COVERAGE) / 2
    low, high = np.percentile(ratios, (tail, 100 - tail))
    ratio = float(np.median(b) / np.median(a))
    # A percentile of resampled medians can miss the median itself where samples are few.
    return Change(
        ratio, min(float(low), ratio), max(float(high), ratio), p_greater(b, a), p_greater(a, b)
    )


def resampled_medians(samples: F64, rng: np.random.Generator) -> F64:
    """[RESAMPLES] medians of as many draws with replacement. A draw is values[floor(n * u)] for a
    uniform u, so that the middle u, a beta variable, decides; the next one above it is the least
    of the others that lie there."""
    values, n = np.sort(samples), len(samples)
    middle = (n + 1) // 2
    lower = rng.beta(middle, n - middle + 1, RESAMPLES)
    picked = values[np.minimum((n * lower).astype(np.int64), n - 1)]
    if n % 2:
        return np.asarray(picked)
    upper = lower + (1 - lower) * rng.beta(1, n - middle, RESAMPLES)
    return np.asarray((picked + values[np.minimum((n * upper).astype(np.int64), n - 1)]) / 2)


def p_greater(x: F64, y: F64) -> float:
    """The chance that as many pairs as here have x > y, or more, where both are drawn alike."""
    n, m = len(x), len(y)
    above = float((x[:, None] > y).sum() + 0.5 * (x[:, None] == y).sum())
    both = np.concatenate([x, y])
    _, ties = np.unique(both, return_counts=True)
    if n * m <= EXACT_PRODUCT and ties.max() == 1:
        counts = rank_counts(n, m)
        return float(counts[round(above) :].sum() / counts.sum())
    total = n + m
    tied = float((ties**3 - ties).sum()) / (total * (total - 1)) if total > 1 else 0.0
    variance = n * m / 12 * (total + 1 - tied)
    if variance <= 0:
        return 1.0
    z = (above - n * m / 2 - 0.5) / math.sqrt(variance)
    return 0.5 * math.erfc(z / math.sqrt(2))


def rank_counts(n: int, m: int) -> F64:
    """[n * m + 1] in how many orders of n and m values u pairs are above: the coefficients of the
    Gaussian binomial, as product of (1 - q^(m + i)) / (1 - q^i) over i = 1..n."""
    size = n * m + 1
    counts = np.zeros(size)
    counts[0] = 1
    for i in range(1, n + 1):
        if m + i < size:
            counts[m + i :] -= counts[: size - m - i].copy()
        for u in range(i, size):
            counts[u] += counts[u - i]
    return counts


def least_p(n: int, m: int) -> float:
    """The smallest chance that n and m repetitions can show: all of one set above the other."""
    return 1 / math.comb(n + m, n)
