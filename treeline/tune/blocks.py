"""A block: cases that were measured in turns, the first being what the others are compared with.

Only runs of one block are compared: what the machine does meanwhile meets all of them alike.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treeline.paired_effects import estimate, noise_of
from treeline.tune.agreement import Agreement
from treeline.tune.cases import Case

F64 = NDArray[np.float64]

# Of a structure: its own bytes, those of the vertices and indices that it is built of, and what its
# BLASes took to build, when they were.
COSTS = ("bvh_bytes", "geometry_bytes", "build_ms")


@dataclass(frozen=True, slots=True)
class Measured:
    """`ms[ray type]` of all the frame's rays of that type, a value a turn. `hits[ray type]` says
    how they compare with those of the block's first case. `refused` says why a case is none: then
    there are no times. `costs` are the structure's, by COSTS."""

    case: Case
    ms: Mapping[str, Sequence[float]]
    hits: Mapping[str, Agreement]
    refused: str | None = None
    costs: Mapping[str, float] = field(default_factory=dict)

    def logs(self, ray: str | None) -> F64:
        """[turns] log of the milliseconds of a ray type, None: of all together."""
        of = [self.ms[ray]] if ray is not None else list(self.ms.values())
        return np.asarray(np.log(np.sum(np.asarray(of, np.float64), axis=0)))


@dataclass(frozen=True, slots=True)
class Block:
    """`seconds` that it took, builds and warm-up included."""

    results: tuple[Measured, ...]
    seconds: float

    @property
    def first(self) -> Measured:
        return self.results[0]

    def facts(self) -> dict[str, Any]:
        """In JSON's types, without the cases."""
        results = [
            {
                "ms": {k: list(v) for k, v in r.ms.items()},
                "hits": {k: h.facts() for k, h in r.hits.items()},
                "costs": dict(r.costs),
            }
            | ({"refused": r.refused} if r.refused else {})
            for r in self.results
        ]
        return {"seconds": self.seconds, "results": results}


# What is measured, the cases, and turns for each.
Measure = Callable[[str, Sequence[Case], int], Block]


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times faster; `low` and `high` hold it. `certain`: beyond noise, either way."""

    ratio: float
    low: float
    high: float
    pairs: int
    certain: bool

    @property
    def won(self) -> bool:
        return self.certain and self.ratio > 1

    def facts(self) -> dict[str, Any]:
        return {
            "gain": self.ratio,
            "interval": [self.low, self.high],
            "pairs": self.pairs,
            "result": "faster" if self.won else "slower" if self.certain else "equal",
        }


def ratio(of: Measured, to: Measured, ray: str | None = None) -> float:
    """Time of one case by another's, of a ray type or of all; inf where either is none."""
    if of.refused or to.refused:
        return math.inf
    return float(np.exp(np.median(of.logs(ray) - to.logs(ray))))


def gain(of: Measured, to: Measured, ray: str | None = None) -> Gain:
    """How many times faster `of` is, turn by turn; none where either is no case."""
    if of.refused or to.refused:
        return Gain(0.0, 0.0, 0.0, 0, True)
    slow, fast = to.logs(ray), of.logs(ray)
    effect, noise = estimate(slow - fast), noise_of(slow - fast)
    # One of many cases is the best by chance: its interval has to stay clear of the noise.
    certain = effect.low > noise or effect.high < -noise
    low, high = math.exp(effect.low), math.exp(effect.high)
    return Gain(math.exp(effect.ms), low, high, effect.pairs, certain)
