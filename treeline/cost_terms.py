"""Which times of a ray type are sums of which counts: the chapter's formula, and finer ones.

The chapter's (section 37.1) has one cost for each ray, hit and miss; what an any-hit call adds is a
term of its own. Over views that differ, a ray's cost differs with the nodes and triangles that it
meets: the formula by nodes counts these, and tells what passes take by themselves (once a frame, a
pixel) from what rays take in them.

A GPU runs a subgroup's rays in step: what a step fetches is the same time for one lane as for all,
and few rays leave most of it idle until the longest has ended. The formula by subgroups has a cost
for each step of a subgroup, and one for each node of the longest ray, which no other work hides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.frame_stats import RayStats
from treeline.cost_model import is_pass_of

# What a pass does, by the first part of its name.
QUEUES, SHADING = ("rays", "arguments", "sort"), ("shade",)
TRAVERSAL, ANY_HIT = ("traverse",), ("any-hit",)
TRACING = (*TRAVERSAL, *ANY_HIT)


@dataclass(frozen=True, slots=True)
class Part:
    """Passes whose time is one sum of `terms` of TERMS."""

    name: str
    passes: tuple[str, ...]
    terms: tuple[str, ...]

    def ms(self, ray_type: str, frames: Sequence[Any], of_turns: Callable[..., float]) -> float:
        """What its passes take for a ray type: `of_turns` of what each timed frame says."""
        return of_turns(
            [
                sum(
                    ms
                    for name, ms in frame.passes.items()
                    if name.split("/")[0] in self.passes and is_pass_of(ray_type, name)
                )
                for frame in frames
            ]
        )

    def counts(self, stats: RayStats, pixels: int) -> list[float]:
        """[terms]."""
        return [float(TERMS[term](stats, pixels) or 0) for term in self.terms]


TERMS: Mapping[str, Callable[[RayStats, int], int | None]] = {
    "frames": lambda stats, pixels: 1,
    "pixels": lambda stats, pixels: pixels,
    "rays": lambda stats, pixels: stats.rays,
    "nodes": lambda stats, pixels: stats.nodes,
    "triangle tests": lambda stats, pixels: stats.triangle_tests,
    "any-hit calls": lambda stats, pixels: stats.any_hits,
    "hits": lambda stats, pixels: stats.hits,
    "misses": lambda stats, pixels: stats.misses,
    "subgroup steps": lambda stats, pixels: stats.subgroup_steps,
    "nodes of the longest ray": lambda stats, pixels: stats.nodes_max,
}

Formula = tuple[Part, ...]
CHAPTER, BY_NODES, BY_SUBGROUPS = "chapter", "by nodes", "by subgroups"
_QUEUES = Part("queues", QUEUES, ("frames", "pixels"))
_STEPS = ("subgroup steps", "triangle tests", "any-hit calls", "nodes of the longest ray")
_SHADE = Part("shade", SHADING, ("frames", "hits", "misses"))
FORMULAS: Mapping[str, Formula] = {
    CHAPTER: (
        Part("trace", (*QUEUES, *TRACING), ("rays", "any-hit calls")),
        Part("shade", SHADING, ("hits", "misses")),
    ),
    BY_NODES: (
        _QUEUES,
        Part("trace", TRACING, ("nodes", "triangle tests", "any-hit calls")),
        _SHADE,
    ),
    BY_SUBGROUPS: (
        _QUEUES,
        Part("trace", TRACING, _STEPS),
        _SHADE,
    ),
}


@dataclass(frozen=True, slots=True)
class Counted:
    """One run's counts by ray type, its pixels, and the hash of what its rays hit."""

    rays: Mapping[str, RayStats]
    pixels: int
    result_hash: str


def count_table(part: Part, ray_type: str, runs: Sequence[Counted]) -> NDArray[np.float64]:
    """[runs, terms]; runs that do not send the type are zeros."""
    empty = [0.0] * len(part.terms)
    return np.array(
        [
            part.counts(run.rays[ray_type], run.pixels) if ray_type in run.rays else empty
            for run in runs
        ]
    )


def known_formulas(runs: Sequence[Counted]) -> dict[str, Formula]:
    """Those whose terms the adapter counts: without subgroup operations nobody knows steps."""

    def is_known(term: str) -> bool:
        every = (TERMS[term](stats, run.pixels) for run in runs for stats in run.rays.values())
        return any(count is not None for count in every)

    return {
        name: formula
        for name, formula in FORMULAS.items()
        if all(is_known(term) for part in formula for term in part.terms)
    }
