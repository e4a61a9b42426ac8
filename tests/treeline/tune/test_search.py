"""The search on a machine whose costs are known: it finds what is faster, and only that."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from bvh.blas import BuildOptions
from bvh.build_defaults import LEAF_SIZES, NODE_FORMATS
from bvh.builders import BUILDERS
from passes.grouping import GROUPS
from passes.ray_kernel import LOOP_COUNTS, RayKernel
from treeline.tune.cases import AXES, Case, Recipe, kernel_choices, recipe_count, recipe_text
from treeline.tune.search import CHALLENGERS, ENDS, KERNELS, STRUCTURE

BASE = Recipe(BuildOptions())
FAST = RayKernel("off", "two", "16")
SHORT = RayKernel("on", "one", "16")
ALL_SAH_4 = BASE.changed("group", "all").changed("builder", "sah").changed("leaf", 4)


def test_structures_and_kernels_are_all_there_once() -> None:
    assert set(AXES["group"]) == set(GROUPS)
    assert set(AXES["builder"]) == {builder.name for builder in BUILDERS}
    assert set(AXES["leaf"]) == set(LEAF_SIZES) and set(AXES["nodes"]) == set(NODE_FORMATS)
    assert recipe_count() == 3 * 4 * 3 * 3 * 4
    for axis, values in AXES.items():
        assert len(set(values)) == len(values) and BASE.value(axis) in values
        for value in values:
            assert BASE.changed(axis, value).value(axis) == value
    for any_hit, loops in product((False, True), LOOP_COUNTS):
        kernels = kernel_choices(any_hit, loops)
        half = 9 if loops == "three" else 6  # sorted ones; GPUs have no use for three loops
        assert len(set(kernels)) == len(kernels) == 2 * half
        default = RayKernel("off" if any_hit else "on", loops, "32")
        assert kernels[0] == RayKernel() and default not in kernels
        counts = LOOP_COUNTS if loops == "three" else LOOP_COUNTS[:-1]
        one_change = {replace(default, stack="16"), replace(default, stack="64")}
        one_change |= {replace(default, loops=count) for count in counts if count != loops}
        one_change |= {replace(default, sort="on" if any_hit else "off")}
        assert set(kernels[1 : 1 + len(one_change)]) == one_change
        other = kernel_choices(not any_hit, loops)
        assert [kernel.stack for kernel in kernels] == [kernel.stack for kernel in other]


def test_the_fastest_kernel_of_each_ray_type_and_the_fastest_structure_are_found(
    machine: Any, search: Any
) -> None:
    m = machine(
        kernel_costs={("near", SHORT): 0.8, ("dark", FAST): 0.9, ("dark", SHORT): 1.3},
        costs={
            ("group", "all"): 0.88,
            ("builder", "sah"): 0.9,
            ("leaf", 4): 0.85,
            ("nodes", "fp32"): 1.2,
        },
    )
    s = search(m.measure)
    assert s.run() == Case.of(ALL_SAH_4, {"near": SHORT, "dark": FAST})
    assert [d.taken for d in s.decisions] == [True] * 5
    built = next(d for d in s.decisions if d.question.startswith("structure"))
    assert built.question == "structure: group all, builder sah, leaf 4"
    assert built.gain.ratio == pytest.approx(1 / (0.88 * 0.9 * 0.85), rel=0.01)
    assert built.gain.low < built.gain.ratio < built.gain.high
    for phase, cases, turns in m.blocks:
        assert len(cases) <= 2 + CHALLENGERS and turns >= 2
        assert cases[0].recipe == (ALL_SAH_4 if phase == "kernels" else BASE)


def test_groupings_are_tried_first_and_the_rest_over_the_fastest(machine: Any, search: Any) -> None:
    m = machine(costs={("group", "all"): 0.9})
    s = search(m.measure)
    assert s.run() == Case(BASE.changed("group", "all"))
    phases = [phase for phase, _, _ in m.blocks]
    assert phases[0] == "structure, group"
    assert {case.recipe for case in m.blocks[0][1]} == {
        BASE.changed("group", group) for group in GROUPS
    }
    for phase, cases, _ in m.blocks[1 : phases.index("kernels")]:
        assert cases[1].recipe.group == "all", phase  # the best so far is in every block
        assert all(case.recipe.group == "all" for case in cases[2:])


def test_a_short_search_takes_the_group(machine: Any, search: Any) -> None:
    """One block of structures is enough for it."""
    m = machine(costs={("group", "all"): 0.88, ("leaf", 4): 0.9}, seconds=10.0)
    s = search(m.measure, budget_s=12.0)
    assert s.run() == Case(BASE.changed("group", "all"))
    assert [phase for phase, _, _ in m.blocks][:1] == ["structure, group"]


def test_a_second_round_finds_what_only_pays_together(machine: Any, search: Any) -> None:
    """Spatial splits that pay in small blocks alone: the builder is tried before the leaf."""

    class Together(machine):
        def cost(self, case: Case, ray: str) -> float:
            build = case.recipe.build
            pays = build.builder == "spatial" and build.leaf == 1
            return super().cost(case, ray) * (0.8 if pays else 1.0)

    found = search(Together(costs={("leaf", 1): 0.95}).measure).run()
    assert found == Case(BASE.changed("builder", "spatial").changed("leaf", 1))


def test_groupings_that_are_the_same_here_are_not_tried(machine: Any, search: Any) -> None:
    m = machine(costs={("group", "all"): 0.5})
    s = search(m.measure, same_groups={"all": "static"})
    assert s.run() == Case(BASE)
    assert all(case.recipe.group != "all" for _, cases, _ in m.blocks for case in cases)


def test_one_structure_is_weighed_by_the_time_of_all_rays(machine: Any, search: Any) -> None:
    """A build that helps the cheap type less than it costs the dear one does not win."""

    class Split(machine):
        def cost(self, case: Case, ray: str) -> float:
            cost = super().cost(case, ray)
            if case.recipe.build.builder == "lbvh":
                cost *= {"near": 1.1, "dark": 0.85}[ray]  # 11 + 4.25 ms against 15
            if case.recipe.build.builder == "sah":
                cost *= {"near": 0.9, "dark": 1.15}[ray]  # 9 + 5.75 ms
            return cost

    assert search(Split().measure).run() == Case(BASE.changed("builder", "sah"))


def test_noise_alone_keeps_the_default(machine: Any, search: Any) -> None:
    for noise in (0.0, 0.02, 0.2):
        s = search(machine(noise=noise).measure)
        assert s.run() == Case(BASE)
        assert not any(d.taken for d in s.decisions)


def test_a_small_gain_within_the_noise_is_not_taken(machine: Any, search: Any) -> None:
    m = machine(kernel_costs={("near", SHORT): 0.99}, noise=0.1)
    assert search(m.measure).run() == Case(BASE)


def test_what_only_the_races_found_is_not_taken(machine: Any, search: Any) -> None:
    """A structure that was lucky in every race, and is slower in the block that decides."""

    class Lucky(machine):
        def measure(self, phase: str, cases: Any, turns: int) -> Any:
            self.costs = {("leaf", 4): 1.1 if phase == "decision" else 0.8}
            return super().measure(phase, cases, turns)

    s = search(Lucky(kernel_costs={("near", SHORT): 0.8}).measure)
    assert s.run() == Case.of(BASE, {"near": SHORT})
    assert [d.taken for d in s.decisions if d.question.startswith("structure")] == [False]


def test_kernels_are_halved_and_run_longer(machine: Any, search: Any) -> None:
    m = machine(kernel_costs={("near", SHORT): 0.8})
    search(m.measure).run()
    raced = [(len(cases) - 1, turns) for phase, cases, turns in m.blocks if phase == "kernels"]
    per_turns = {turns: sum(n for n, t in raced if t == turns) for _, turns in raced}
    assert per_turns == {2: 11, 4: 6, 8: 3, 16: 2, 32: 1}


def test_what_is_refused_never_wins_and_says_why(machine: Any, search: Any) -> None:
    def refused(case: Case) -> str | None:
        if case.recipe.group == "all":
            return "9 of 10 near rays hit something else"
        short = any(kernel.stack == "16" for _, kernel in case.kernels)
        return "a stack overflowed" if short else None

    m = machine(kernel_costs={("near", SHORT): 0.5}, costs={("group", "all"): 0.5}, refused=refused)
    s = search(m.measure)
    assert s.run() == Case(BASE)
    assert {t.facts()["refused"] for t in s.tried if "stack of 16" in t.what} == {
        "a stack overflowed"
    }
    group = next(t for t in s.tried if t.what == "group all")
    assert group.facts()["refused"] == "9 of 10 near rays hit something else"


def test_time_bounds_the_search(machine: Any, search: Any) -> None:
    costs = {("builder", "sah"): 0.9, ("leaf", 4): 0.85}
    full, short = machine(costs=costs), machine(costs=costs)
    whole = search(full.measure)
    whole.run()
    s = search(short.measure, budget_s=10.0)
    s.run()
    assert len(short.blocks) < len(full.blocks) and s.not_tried > whole.not_tried
    for number, (phase, _, _) in enumerate(short.blocks):
        end = ENDS[STRUCTURE if phase.startswith(STRUCTURE) else KERNELS]
        assert number < 10 * end or phase == "decision"
    assert s.spent_s == len(short.blocks) <= 10 + 1
    nothing = machine(costs=costs)
    assert search(nothing.measure, budget_s=0.0).run() == Case(BASE)
    assert nothing.blocks == []


@pytest.mark.parametrize(
    "structure_s, kernel_s, structures, kernels",
    [(10.0, 1.0, [3, 3, 2], [5, 5]), (0.1, 8.0, [3, 4, 3, 3, 4], [5, 5, 2])],
)
def test_blocks_are_as_small_as_the_time_that_is_left(
    machine: Any,
    search: Any,
    structure_s: float,
    kernel_s: float,
    structures: list[int],
    kernels: list[int],
) -> None:
    """The search ends about when it should, and what one stage takes does not count in another."""

    class Slow(machine):
        def measure(self, phase: str, cases: Any, turns: int) -> Any:
            self.seconds = (structure_s if phase.startswith(STRUCTURE) else kernel_s) * len(cases)
            return super().measure(phase, cases, turns)

    m = Slow()
    search(m.measure, budget_s=100.0).run()
    sizes = {
        stage: [len(cases) for phase, cases, _ in m.blocks if phase.startswith(stage)]
        for stage in ENDS
    }
    assert sizes == {STRUCTURE: structures, KERNELS: kernels}
    assert 1 + CHALLENGERS == max(structures + kernels)


def test_a_recipe_says_what_it_changes() -> None:
    assert recipe_text(BASE, BASE) == "as the default"
    assert recipe_text(ALL_SAH_4, BASE) == "group all, builder sah, leaf 4"
    assert recipe_text(BASE, ALL_SAH_4) == "group static, builder ploc, leaf 2"
