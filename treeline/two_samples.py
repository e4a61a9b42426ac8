"""Whether one set of repetitions is slower than another, and by how much.

The size of the change is the ratio of the medians, with the wider end of two intervals:

- of the repetitions, as if each knew nothing of the one before: a bootstrap (percentiles, after
  Efron and Tibshirani, "An Introduction to the Bootstrap", section 13.3);
- of the two runs (RUN_COVERAGE), whose machine changes meanwhile (clock, heat, other programs), so
  that two runs of one program differ by more than repetitions say. Each run is cut into blocks in
  the order of its repetitions. Their medians' spread, drift included, says how far apart blocks
  lie, and how much neighbours are alike (autocorrelation at lag 1, its bias after Kendall 1954
  taken off) how few of them are independent (batch means of an AR(1) process). What changes more
  slowly than a whole run leaves no trace in it: only runs in turns can tell that from a change.

That there is a change at all is asked by ranks (Mann and Whitney 1947), which no outlier can move
far: exact where there are few repetitions without ties, else by the normal approximation with its
corrections for ties and continuity.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treeline.student import quantile

F64 = NDArray[np.float64]

RESAMPLES = 4000
COVERAGE = 0.95
RUN_COVERAGE = 0.98  # all rows of a file drift together: one that is wrong is seldom alone
MOST_BLOCKS, FEWEST_BLOCKS = 8, 4
BLOCK_LENGTH = 3  # repetitions, so that one that was interrupted moves no block
MOST_ALIKE = 0.9  # autocorrelation of so few blocks is not known better
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
    """The change from repetitions `a` [n] to `b` [m], positive times in any unit, in the order in
    which they were measured."""
    ratios = resampled_medians(b, rng) / resampled_medians(a, rng)
    tail = 100 * (1 - COVERAGE) / 2
    low, high = np.percentile(ratios, (tail, 100 - tail))
    ratio = float(np.median(b) / np.median(a))
    reach = math.exp(between_runs(np.log(a), np.log(b)))
    return Change(
        ratio,
        min(float(low), ratio / reach),
        max(float(high), ratio * reach),
        p_greater(b, a),
        p_greater(a, b),
    )


def between_runs(a: F64, b: F64) -> float:
    """How far, with RUN_COVERAGE, the medians of the logarithms of runs [n] and [m] lie apart on a
    machine that changes as it did during them."""
    shortest = min(len(a), len(b))
    count = min(MOST_BLOCKS, max(FEWEST_BLOCKS, shortest // BLOCK_LENGTH), shortest)
    apart = []
    for run in (a, b):
        medians = np.array([np.median(block) for block in np.array_split(run, count)])
        apart.append(medians - medians.mean())
    square = sum(float(values @ values) for values in apart)
    if count < 2 or square == 0:
        return 0.0
    alike = sum(float(values[1:] @ values[:-1]) for values in apart) / square
    alike = min(max(alike + (1 + 3 * alike) / count, 0.0), MOST_ALIKE)
    fewer = (1 + alike) / (1 - alike)  # blocks stand for one that is independent
    free = 2 * (count - 1)
    deviation = math.sqrt(2 * square / free / count * fewer)
    return quantile(max(2, int(free / fewer)), RUN_COVERAGE) * deviation


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
