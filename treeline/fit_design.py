"""Which runs a fit is made of: chosen from counted candidates, so that several of them move every
coefficient.

Greedy D-optimality with exchanges (Fedorov 1972; Atkinson, Donev, Tobias 2007, chapter 12): the
product of the determinants of X'X over all sums that will be fitted is made as large as it gets,
each row weighed by what the run is expected to take, as the fit weighs it. Such a design likes one
extreme run to decide a coefficient, whose error nobody would see: further exchanges spread that
over several runs. What no choice of candidates can tell is known then, before anything is timed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

CHOSEN = 18  # runs
# Where one run holds nine tenths of what is known of a coefficient (`deciding_runs`), that is
# refused: without the run nobody would know. Designs aim at AIMED.
FEWEST_DECIDING = 1.25
AIMED = 3.0
# Directions of the counts that are this much weaker than the strongest are noise, not evidence.
MAX_CONDITION = 100.0
# Runs shorter than this part of the longest count as if they were as long: clocks are not exact.
SHORTEST_PART = 0.02
TOLD = 0.01  # of a column: what is left of it when others explain more is noise
RIDGE = 1e-4  # of what a full column has: sums that candidates cannot tell decide nothing
MOST_EXCHANGES = 50
LEAST_GAIN = 0.05  # runs, for which one is exchanged to spread what decides


def weighed(counts: F64) -> F64:
    """[runs, terms] each column by its mean, each row by its sum: as if terms shared the time."""
    means = counts.mean(axis=0)
    shares = counts / np.where(means > 0, means, 1.0)
    sums = shares.sum(axis=1, keepdims=True)
    least = SHORTEST_PART * sums.max(initial=0.0)
    return np.asarray(shares / np.maximum(sums, least if least > 0 else 1.0), np.float64)


def scaled(rows: F64) -> F64:
    """[runs, terms] with columns of length 1; those of zeros stay."""
    lengths = np.linalg.norm(rows, axis=0)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), np.float64)


def rank_of(strength: F64) -> int:
    """How many of the directions whose singular values [n], the largest first, these are can be
    told."""
    return int((strength * MAX_CONDITION > strength[0]).sum()) if strength.any() else 0


def deciding_runs(rows: F64) -> F64:
    """[terms] how many of the runs [runs, terms] decide each coefficient: the column's part that
    the others do not explain lies in so many of them, (sum of squares)^2 / sum of fourth powers. 0
    where that part is less than TOLD of it."""
    found = np.zeros(rows.shape[1])
    columns = scaled(rows)
    for term in range(rows.shape[1]):
        others = np.delete(columns, term, axis=1)
        own = columns[:, term]
        rest = own - others @ np.linalg.lstsq(others, own, rcond=1e-10)[0]
        squares = rest**2
        if squares.sum() > TOLD**2:
            found[term] = squares.sum() ** 2 / (squares**2).sum()
    return found


def leverages(rows: F64) -> F64:
    """[runs] how much each run's own time decides what is predicted of it, 0 to 1."""
    left, strength, _ = np.linalg.svd(scaled(rows), full_matrices=False)
    kept = strength > 1e-10 * strength.max(initial=0.0)
    return np.asarray((left[:, kept] ** 2).sum(axis=1), np.float64)


def choose(tables: Sequence[F64], count: int = CHOSEN, first: int = 0) -> list[int]:
    """Numbers of the chosen candidates, `first` among them; all where there are no more than
    `count`. `tables` are the counts [candidates, terms] of every sum that will be fitted."""
    total = len(tables[0])
    if total <= count:
        return list(range(total))
    rows = [scaled(weighed(table)) * np.sqrt(total) for table in tables]
    squares = [table[:, :, None] * table[:, None, :] for table in rows]
    information = [square[first] + RIDGE * np.eye(square.shape[1]) for square in squares]
    chosen = [first]
    while len(chosen) < count:
        gain = _gains(information, squares)
        gain[chosen] = -np.inf
        best = int(np.argmax(gain))
        chosen.append(best)
        information = [m + square[best] for m, square in zip(information, squares, strict=True)]
    for _ in range(MOST_EXCHANGES):
        exchange = _best_exchange(information, squares, chosen, first)
        if exchange is None:
            break
        place, new = exchange
        for m, square in zip(information, squares, strict=True):
            m += square[new] - square[chosen[place]]
        chosen[place] = new
    return sorted(chosen)


def _gains(information: Sequence[F64], squares: Sequence[F64]) -> F64:
    """[candidates] the logarithm of the determinants' product with each of them."""
    return np.asarray(
        sum(np.linalg.slogdet(m + s)[1] for m, s in zip(information, squares, strict=True))
    )


def _best_exchange(
    information: Sequence[F64], squares: Sequence[F64], chosen: Sequence[int], first: int
) -> tuple[int, int] | None:
    """(place in `chosen`, candidate that is better there), or None."""
    best, found = float(sum(np.linalg.slogdet(m)[1] for m in information)) + 1e-6, None
    for place, old in enumerate(chosen):
        if old == first:
            continue
        without = [m - square[old] for m, square in zip(information, squares, strict=True)]
        gain = _gains(without, squares)
        gain[list(chosen)] = -np.inf
        new = int(np.argmax(gain))
        if gain[new] > best:
            best, found = float(gain[new]), (place, new)
    return found


def decided_by_several(
    tables: Sequence[F64], chosen: Sequence[int], first: int = 0, aimed: float = AIMED
) -> list[int]:
    """`chosen` after exchanges, while one gains: each is the one that brings all coefficients
    together nearest to `aimed` runs that decide them. `first` stays."""
    runs = list(chosen)
    best = _runs_that_decide(tables, runs, aimed)
    for _ in range(MOST_EXCHANGES):
        if best >= aimed * sum(table.shape[1] for table in tables):
            break
        others = [new for new in range(len(tables[0])) if new not in runs]
        exchanged = [
            [*runs[:place], new, *runs[place + 1 :]]
            for place, old in enumerate(runs)
            if old != first
            for new in others
        ]
        gains = [_runs_that_decide(tables, trial, aimed) for trial in exchanged]
        if max(gains, default=best) < best + LEAST_GAIN:
            break
        best = max(gains)
        runs = exchanged[gains.index(best)]
    return sorted(runs)


def _runs_that_decide(tables: Sequence[F64], chosen: Sequence[int], aimed: float) -> float:
    """The sum over all coefficients, each at most `aimed`."""
    return float(
        sum(np.minimum(deciding_runs(weighed(table[chosen])), aimed).sum() for table in tables)
    )


@dataclass(frozen=True, slots=True)
class SumCheck:
    """What is known of one sum before anything is timed. `deciding[term]` runs, `leverage` the
    largest of a run, which is number `run` of the chosen."""

    name: str
    rank: int
    terms: tuple[str, ...]
    deciding: tuple[float, ...]
    leverage: float
    run: int

    def facts(self) -> dict[str, Any]:
        return {
            "sum": self.name,
            "rank": self.rank,
            "terms": len(self.terms),
            "deciding_runs": dict(zip(self.terms, self.deciding, strict=True)),
            "largest_leverage": self.leverage,
            "at_run": self.run,
        }


def check_sum(name: str, terms: tuple[str, ...], counts: F64) -> SumCheck:
    rows = weighed(counts)
    leverage = leverages(rows)
    run = int(np.argmax(leverage))
    strength = np.asarray(np.linalg.svd(scaled(rows), compute_uv=False), np.float64)
    deciding = tuple(deciding_runs(rows).tolist())
    return SumCheck(name, rank_of(strength), terms, deciding, float(leverage[run]), run)
