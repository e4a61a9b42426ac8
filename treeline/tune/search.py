"""The search: kernels of each ray type, builds of the one structure, kernels again over it, and a
last block that decides.

All of it is a function of what `measure` returns, its seconds included: the clock is the sum of the
blocks' seconds, so that a search that goes on from measured blocks takes the same way again.

Kernels go by successive halving: all are measured a few turns, the faster half twice as many, until
one is left a ray type; types are raced side by side, since a frame traces all of them. Builds that
change one thing come first; those that change several follow in the order that the sum of their
single effects predicts, until the prediction has nothing left that could win or time is out; then
the best are halved. Of builds that are equal the one that changes least is taken. The default is in
every block.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bvh.blas import BuildOptions
from passes.ray_kernel import RayKernel
from treeline.measure import Progress
from treeline.tune.blocks import Block, Gain, Measure, Measured, gain, ratio
from treeline.tune.cases import (
    AXES,
    Case,
    build_text,
    changes,
    combinations,
    kernel_choices,
    kernel_text,
    kernels_text,
    single_changes,
)

CHALLENGERS = 4  # of a block, beside the default: so many frames' pipelines are in use at once
KERNELS_END, BUILDS_END, AGAIN_END = 0.3, 0.75, 0.9  # of the time
FINALISTS = 4  # builds
AGAIN = 3  # kernels of a type that are raced again over another structure
HOPE = math.log(1.05)  # a build that is predicted so much slower than the best is not tried
EQUAL = math.log(1.01)  # smaller effects are none, until the decision


@dataclass(frozen=True, slots=True)
class Tried:
    """A line of the evidence: `what` was compared for `ray` ("all": their sum), and its time by the
    default's; `turns` of each."""

    phase: str
    ray: str
    what: str
    ratio: float
    turns: int
    refused: str | None = None

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {"phase": self.phase, "ray": self.ray, "what": self.what}
        if self.refused:
            return found | {"refused": self.refused}
        return found | {"time_by_default": self.ratio, "turns": self.turns}


@dataclass(frozen=True, slots=True)
class Decision:
    """What the last block said of one question."""

    question: str
    gain: Gain
    taken: bool


@dataclass(slots=True)
class Search:
    """`any_hit[ray type]` of the frame's types; `default_loops` of their default kernels here, of
    passes.ray_kernel.LOOP_COUNTS. `budget_s` bounds the blocks' seconds, but for the one that
    decides. `turns` of the first race, and `last_turns` of the decision."""

    measure: Measure
    base: BuildOptions
    any_hit: Mapping[str, bool]
    default_loops: str
    budget_s: float
    progress: Progress
    turns: int = 2
    last_turns: int = 12
    spent_s: float = 0.0
    not_tried: int = 0  # builds, for lack of time or hope
    tried: list[Tried] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def run(self) -> Case:
        """The case to take; the default where nothing is certainly faster."""
        scores = self._race_kernels(
            "kernels",
            self.base,
            {
                ray: kernel_choices(any_hit, self.default_loops)
                for ray, any_hit in self.any_hit.items()
            },
            KERNELS_END,
        )
        kernels = _best(scores)
        build = self._race_builds(kernels)
        again: Mapping[str, RayKernel] = kernels
        if build != self.base:
            few = {ray: _ranked(found)[:AGAIN] for ray, found in scores.items()}
            again = _best(self._race_kernels("kernels again", build, few, AGAIN_END))
        return self._decide(kernels, build, again)

    def _block(self, phase: str, cases: Sequence[Case], turns: int) -> Block:
        self.progress.begin(
            f"{phase}: {len(cases)} cases x {turns}, {self.spent_s:.0f} of {self.budget_s:.0f} s"
        )
        block = self.measure(phase, cases, turns)
        self.spent_s += block.seconds
        self.progress.advance()
        return block

    def _blocks(
        self, phase: str, first: Case, others: Sequence[Case], turns: int, end: float
    ) -> list[tuple[Measured, Measured]]:
        """(case, default of its block) of those that there is time for."""
        found = []
        for start in range(0, len(others), CHALLENGERS):
            if self.spent_s >= end * self.budget_s:
                break
            block = self._block(phase, [first, *others[start : start + CHALLENGERS]], turns)
            found += [(result, block.first) for result in block.results[1:]]
        return found

    def _race_kernels(
        self,
        phase: str,
        build: BuildOptions,
        choices: Mapping[str, Sequence[RayKernel]],
        end: float,
    ) -> dict[str, dict[RayKernel, float]]:
        """Time by the default kernel's of every kernel that was measured, by its longest race."""
        first = Case(build)
        left = {ray: list(kernels) for ray, kernels in choices.items()}
        scores: dict[str, dict[RayKernel, float]] = {ray: {} for ray in choices}
        turns = self.turns
        while any(left.values()):
            rows = max(map(len, left.values()))
            sets = [{r: k[i] for r, k in left.items() if i < len(k)} for i in range(rows)]
            cases = [Case.of(build, kernels) for kernels in sets]
            wanted = dict(zip(cases, sets, strict=True))
            wanted.pop(first, None)
            done = self._blocks(phase, first, list(wanted), turns, end)
            for result, default in done:
                for ray, kernel in wanted[result.case].items():
                    if kernel == RayKernel():
                        continue
                    by = ratio(result, default, ray)
                    scores[ray][kernel] = by
                    self.tried.append(
                        Tried(phase, ray, kernel_text(kernel), by, turns, result.refused)
                    )
            if len(done) < len(wanted) or rows == 1:
                break
            left = {
                ray: _ranked({k: scores[ray].get(k, math.inf) for k in kernels})
                for ray, kernels in left.items()
            }
            left = {ray: kernels[: -(-len(kernels) // 2)] for ray, kernels in left.items()}
            turns *= 2
        return scores

    def _race_builds(self, kernels: Mapping[str, RayKernel]) -> BuildOptions:
        """The fastest for all ray types together, with these kernels."""
        first = Case.of(self.base, kernels)
        scores: dict[BuildOptions, float] = {}
        effects: dict[tuple[str, Any], float] = {}

        def race(phase: str, builds: Sequence[BuildOptions], turns: int) -> bool:
            cases = [Case.of(build, kernels) for build in builds]
            done = self._blocks(phase, first, cases, turns, BUILDS_END)
            for result, default in done:
                by = ratio(result, default)
                scores[result.case.build] = by
                text = build_text(result.case.build, self.base)
                self.tried.append(Tried(phase, "all", text, by, turns, result.refused))
            return len(done) == len(cases)

        singles = single_changes(self.base)
        in_time = race("one change of the build", singles, self.turns)
        for build in singles:
            if math.isfinite(scores.get(build, math.inf)):
                effects |= {change: math.log(scores[build]) for change in _axes(build, self.base)}
        effects = {change: log for change, log in effects.items() if log < HOPE}
        predicted = {
            build: sum(effects[c] for c in _axes(build, self.base) if abs(effects[c]) > EQUAL)
            for build in combinations(self.base)
            if _axes(build, self.base) <= set(effects)
        }
        several = sorted(predicted, key=lambda b: (predicted[b], len(_axes(b, self.base))))
        while in_time and several:
            few = several[:CHALLENGERS]
            if predicted[few[0]] > math.log(min(1.0, *scores.values())) + HOPE:
                break
            in_time = race("several changes of the build", few, self.turns)
            del several[: len(few)]
        every = len(singles) + sum(1 for _ in combinations(self.base))
        self.not_tried = every - len(scores)
        best, turns = _ranked(scores)[:FINALISTS], 2 * self.turns
        while best and in_time:
            in_time = race("best builds", best, turns)
            if len(best) == 1:
                break
            best = _ranked({build: scores[build] for build in best})[: -(-len(best) // 2)]
            turns *= 2
        if not best or scores[best[0]] >= 1:
            return self.base
        equal = [b for b, by in scores.items() if by <= scores[best[0]] * math.exp(EQUAL)]
        return min(equal, key=lambda b: (len(_axes(b, self.base)), scores[b]))

    def _decide(
        self,
        kernels: Mapping[str, RayKernel],
        build: BuildOptions,
        again: Mapping[str, RayKernel],
    ) -> Case:
        """One long block over what is left; each change has to be certainly faster."""
        default, tuned = Case(self.base), Case.of(self.base, kernels)
        other, whole = Case(build), Case.of(build, again)
        cases = list(dict.fromkeys((default, tuned, other, whole)))
        if len(cases) == 1:
            return default
        block = self._block("decision", cases, self.last_turns)
        found = {result.case: result for result in block.results}
        kept = self._certain(found[tuned], found[default], kernels)
        if build == self.base or found[whole].refused:
            return Case.of(self.base, kept)
        kept_again = self._certain(found[whole], found[other], again)
        base = found[tuned] if kept else found[default]
        faster = found[whole] if kept_again else found[other]
        by = gain(faster, base)
        self.decisions.append(Decision(f"build: {build_text(build, self.base)}", by, by.won))
        return Case.of(build, kept_again) if by.won else Case.of(self.base, kept)

    def _certain(
        self, of: Measured, to: Measured, kernels: Mapping[str, RayKernel]
    ) -> dict[str, RayKernel]:
        """The kernels that are certainly faster than their types' default."""
        kept = {}
        for ray, kernel in kernels.items():
            by = gain(of, to, ray)
            text = f"{kernels_text([(ray, kernel)])} ({build_text(of.case.build, self.base)})"
            self.decisions.append(Decision(text, by, by.won))
            if by.won:
                kept[ray] = kernel
        return kept


def _ranked(scores: Mapping[Any, float]) -> list[Any]:
    """The fastest first; what is none (inf) is left out."""
    return sorted((k for k, by in scores.items() if math.isfinite(by)), key=lambda k: scores[k])


def _best(scores: Mapping[str, Mapping[RayKernel, float]]) -> dict[str, RayKernel]:
    """The fastest kernel of each ray type that has one faster than its default."""
    ranked = {ray: _ranked(found) for ray, found in scores.items()}
    return {ray: ks[0] for ray, ks in ranked.items() if ks and scores[ray][ks[0]] < 1}


def _axes(build: BuildOptions, base: BuildOptions) -> set[tuple[str, Any]]:
    return {(name, value) for name, value in changes(build, base).items() if name in AXES}
