"""Which times of a ray type are sums of which counts: the chapter's formula, and a finer one.

The chapter's (section 37.1) has one cost for each ray, hit and miss; what an any-hit call adds is a
term of its own. Over views that differ, a ray's cost differs with the nodes and triangles that it
meets: the finer formula counts these, and tells what passes take by themselves (once a frame, a
pixel) from what rays take in them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.frame_stats import RayStats
from treeline.cost_model import is_pass_of

# What a pass does, by the first part of its name.
QUEUES, TRACING, SHADING = ("rays", "arguments", "sort"), ("traverse", "any-hit"), ("shade",)


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
}

Formula = tuple[Part, ...]
CHAPTER, BY_NODES = "chapter", "by nodes"
FORMULAS: Mapping[str, Formula] = {
    CHAPTER: (
        Part("trace", (*QUEUES, *TRACING), ("rays", "any-hit calls")),
        Part("shade", SHADING, ("hits", "misses")),
    ),
    BY_NODES: (
        Part("queues", QUEUES, ("frames", "pixels")),
        Part("trace", TRACING, ("nodes", "triangle tests", "any-hit calls")),
        Part("shade", SHADING, ("frames", "hits", "misses")),
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
