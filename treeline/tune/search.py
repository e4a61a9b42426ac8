"""The search: one structure for all ray types, then kernels of each type over it, and a last block
that decides.

All of it is a function of what `measure` returns, its seconds included: the clock is the sum of the
blocks' seconds, so that a search that goes on from measured blocks takes the same way again.

Structures go by coordinate descent: an axis at a time, in the order of cases.AXES, all its values
take turns with the default and the best so far, which the fastest of them replaces if it is faster;
over all axes again until nothing changes or time is out. Kernels go by successive halving: all are
measured a few turns, the faster half twice as many, until one is left a ray type; types are raced
side by side, since a frame traces all of them. The default is in every block, and a block has only
as many cases as earlier ones say that there is time for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from passes.ray_kernel import RayKernel
from treeline.measure import Progress
from treeline.tune.agreement import Agreement
from treeline.tune.blocks import Block, Gain, Measure, Measured, gain, ratio
from treeline.tune.cases import (
    AXES,
    GROUP,
    Case,
    Recipe,
    kernel_choices,
    kernel_text,
    kernels_text,
    recipe_count,
    recipe_text,
)

CHALLENGERS = 4  # of a block, beside the default: so many frames' pipelines are in use at once
STRUCTURE, KERNELS = "structure", "kernels"  # stages
ENDS = {STRUCTURE: 0.65, KERNELS: 0.9}  # of the time
EQUAL = 0.01  # smaller gains are none, until the decision


@dataclass(frozen=True, slots=True)
class Tried:
    """A line of the evidence: `what` was compared for `ray` ("all": their sum), and its time by the
    default's; `turns` of each. `hits` and `costs` as of Measured, of structures."""

    phase: str
    ray: str
    what: str
    ratio: float
    turns: int
    refused: str | None = None
    hits: Mapping[str, Agreement] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {"phase": self.phase, "ray": self.ray, "what": self.what}
        if self.hits:
            found["hits"] = {name: hits.facts() for name, hits in self.hits.items()}
        if self.costs:
            found["costs"] = dict(self.costs)
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
    passes.ray_kernel.LOOP_COUNTS. `same_groups[grouping]` names an earlier one that makes the same
    of this scene. `budget_s` bounds the blocks' seconds, but for the one that decides. `turns` of
    the first race, and `last_turns` of the decision."""

    measure: Measure
    base: Recipe
    any_hit: Mapping[str, bool]
    default_loops: str
    budget_s: float
    progress: Progress
    same_groups: Mapping[str, str] = field(default_factory=dict)
    turns: int = 2
    last_turns: int = 12
    spent_s: float = 0.0
    tried: list[Tried] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    _known: set[Recipe] = field(default_factory=set)
    # By stage: seconds that a case took which its last block added.
    _one_s: dict[str, float] = field(default_factory=dict)

    def run(self) -> Case:
        """The case to take; the default where nothing is certainly faster."""
        recipe = self._find_recipe()
        choices = {
            ray: kernel_choices(any_hit, self.default_loops)
            for ray, any_hit in self.any_hit.items()
        }
        return self._decide(recipe, _best(self._race_kernels(recipe, choices)))

    @property
    def not_tried(self) -> int:
        """Structures, of all that the axes make."""
        return recipe_count() - len({self.base, *self._known})

    def _block(self, phase: str, cases: Sequence[Case], turns: int) -> Block:
        self.progress.begin(
            f"{phase}: {len(cases)} cases x {turns}, {self.spent_s:.0f} of {self.budget_s:.0f} s"
        )
        block = self.measure(phase, cases, turns)
        self.spent_s += block.seconds
        self.progress.advance()
        return block

    def _room(self, stage: str) -> int:
        """How many cases a block may add to those that are in every one, 1 to CHALLENGERS; 0: time
        is out."""
        left = ENDS[stage] * self.budget_s - self.spent_s
        if left <= 0:
            return 0
        one = self._one_s.get(stage, 0.0)
        return max(1, min(CHALLENGERS, int(left / one))) if one else CHALLENGERS

    def _blocks(
        self, stage: str, phase: str, always: Sequence[Case], others: Sequence[Case], turns: int
    ) -> list[tuple[Measured, Block]]:
        """(case, its block) of those that there is time for; `always`, the default first, are in
        every block."""
        found: list[tuple[Measured, Block]] = []
        left = list(others)
        while left and (room := self._room(stage)):
            few, left = left[:room], left[room:]
            block = self._block(phase, [*always, *few], turns)
            self._one_s[stage] = block.seconds / len(few)
            found += [(result, block) for result in block.results[len(always) :]]
        return found

    def _find_recipe(self) -> Recipe:
        """The fastest that was met for all ray types together, with the default kernels."""
        best = self.base
        while True:
            before = best
            for axis in AXES:
                best = self._best_on(axis, best)
            if best == before or not self._room(STRUCTURE):
                return best

    def _best_on(self, axis: str, best: Recipe) -> Recipe:
        """`best`, or what is faster with another value on this axis."""
        values = [v for v in AXES[axis] if axis != GROUP or v not in self.same_groups]
        recipes = [best.changed(axis, value) for value in values]
        new = [r for r in recipes if r != self.base and r not in self._known]
        always = [Case(recipe) for recipe in dict.fromkeys((self.base, best))]
        scores = {best: 1.0}
        phase = f"{STRUCTURE}, {axis}"
        others = [Case(recipe) for recipe in new]
        for result, block in self._blocks(STRUCTURE, phase, always, others, self.turns):
            self._known.add(result.case.recipe)
            scores[result.case.recipe] = ratio(result, block.results[len(always) - 1])
            self.tried.append(
                Tried(
                    phase,
                    "all",
                    recipe_text(result.case.recipe, self.base),
                    ratio(result, block.first),
                    self.turns,
                    result.refused,
                    result.hits,
                    result.costs,
                )
            )
        fastest = _ranked(scores)[0]
        return fastest if scores[fastest] < 1 - EQUAL else best

    def _race_kernels(
        self, recipe: Recipe, choices: Mapping[str, Sequence[RayKernel]]
    ) -> dict[str, dict[RayKernel, float]]:
        """Time by the default kernel's of every kernel that was measured, by its longest race."""
        first = Case(recipe)
        left = {ray: list(kernels) for ray, kernels in choices.items()}
        scores: dict[str, dict[RayKernel, float]] = {ray: {} for ray in choices}
        turns = self.turns
        while any(left.values()):
            rows = max(map(len, left.values()))
            sets = [{r: k[i] for r, k in left.items() if i < len(k)} for i in range(rows)]
            cases = [Case.of(recipe, kernels) for kernels in sets]
            wanted = dict(zip(cases, sets, strict=True))
            wanted.pop(first, None)
            done = self._blocks(KERNELS, KERNELS, [first], list(wanted), turns)
            for result, block in done:
                for ray, kernel in wanted[result.case].items():
                    if kernel == RayKernel():
                        continue
                    by = ratio(result, block.first, ray)
                    scores[ray][kernel] = by
                    self.tried.append(
                        Tried(KERNELS, ray, kernel_text(kernel), by, turns, result.refused)
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

    def _decide(self, recipe: Recipe, kernels: Mapping[str, RayKernel]) -> Case:
        """One long block over what is left; each change has to be certainly faster."""
        default, tuned = Case(self.base), Case.of(self.base, kernels)
        other, whole = Case(recipe), Case.of(recipe, kernels)
        cases = list(dict.fromkeys((default, tuned, other, whole)))
        if len(cases) == 1:
            return default
        block = self._block("decision", cases, self.last_turns)
        found = {result.case: result for result in block.results}
        kept = self._certain(found[tuned], found[default], kernels)
        if recipe == self.base or found[other].refused:
            return Case.of(self.base, kept)
        kept_again = self._certain(found[whole], found[other], kernels)
        base = found[tuned] if kept else found[default]
        faster = found[whole] if kept_again else found[other]
        by = gain(faster, base)
        self.decisions.append(Decision(f"structure: {recipe_text(recipe, self.base)}", by, by.won))
        return Case.of(recipe, kept_again) if by.won else Case.of(self.base, kept)

    def _where(self, recipe: Recipe) -> str:
        default = recipe == self.base
        return "default structure" if default else recipe_text(recipe, self.base)

    def _certain(
        self, of: Measured, to: Measured, kernels: Mapping[str, RayKernel]
    ) -> dict[str, RayKernel]:
        """The kernels that are certainly faster than their types' default."""
        kept = {}
        for ray, kernel in kernels.items():
            by = gain(of, to, ray)
            text = f"{kernels_text([(ray, kernel)])} ({self._where(of.case.recipe)})"
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
