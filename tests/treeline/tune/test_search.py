"""The search on a machine whose costs are known: it finds what is faster, and only that."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from bvh.blas import BuildOptions
from passes.ray_kernel import LOOP_COUNTS, RayKernel
from treeline.tune.cases import AXES, Case, combinations, kernel_choices, single_changes
from treeline.tune.search import BUILDS_END, CHALLENGERS, KERNELS_END

BASE = BuildOptions()
FAST = RayKernel("off", "two", "16")
SHORT = RayKernel("on", "one", "16")


def test_builds_and_kernels_are_all_there_once() -> None:
    builds = [BASE, *single_changes(BASE), *combinations(BASE)]
    count = 1
    for values in AXES.values():
        count *= len(values)
    assert len(set(builds)) == len(builds) == count
    for any_hit, loops in product((False, True), LOOP_COUNTS):
        kernels = kernel_choices(any_hit, loops)
        half = 9 if loops == "three" else 6  # sorted ones; GPUs have no use for three loops
        assert len(set(kernels)) == len(kernels) == 2 * half
        # Unsorted or sorted, so many loops, a stack of 32.
        assert kernels.index(RayKernel()) == half * any_hit + 3 * LOOP_COUNTS.index(loops) + 1


def test_the_fastest_kernel_of_each_ray_type_and_the_fastest_build_are_found(
    machine: Any, search: Any
) -> None:
    m = machine(
        kernel_costs={("near", SHORT): 0.8, ("dark", FAST): 0.9, ("dark", SHORT): 1.3},
        build_costs={("builder", "sah"): 0.9, ("leaf", 4): 0.85, ("nodes", "fp32"): 1.2},
    )
    s = search(m.measure)
    build = replace(BASE, builder="sah", leaf=4)
    assert s.run() == Case.of(build, {"near": SHORT, "dark": FAST})
    assert [d.taken for d in s.decisions] == [True] * 5
    built = next(d for d in s.decisions if d.question.startswith("build"))
    assert built.gain.ratio == pytest.approx(1 / (0.9 * 0.85), rel=0.01)
    assert built.gain.low < built.gain.ratio < built.gain.high
    for phase, cases, turns in m.blocks:
        default = cases[0]
        assert len(cases) <= 1 + CHALLENGERS and turns >= 2
        assert default.build == (build if phase == "kernels again" else BASE)


def test_one_structure_is_weighed_by_the_time_of_all_rays(machine: Any, search: Any) -> None:
    """A build that helps the cheap type less than it costs the dear one does not win."""

    class Split(machine):
        def cost(self, case: Case, ray: str) -> float:
            cost = super().cost(case, ray)
            if case.build.builder == "lbvh":
                cost *= {"near": 1.1, "dark": 0.85}[ray]  # 11 + 4.25 ms against 15
            if case.build.builder == "sah":
                cost *= {"near": 0.9, "dark": 1.15}[ray]  # 9 + 5.75 ms
            return cost

    assert search(Split().measure).run() == Case(replace(BASE, builder="sah"))


def test_noise_alone_keeps_the_default(machine: Any, search: Any) -> None:
    for noise in (0.0, 0.02, 0.2):
        s = search(machine(noise=noise).measure)
        assert s.run() == Case(BASE)
        assert not any(d.taken for d in s.decisions)


def test_a_small_gain_within_the_noise_is_not_taken(machine: Any, search: Any) -> None:
    m = machine(kernel_costs={("near", SHORT): 0.99}, noise=0.1)
    assert search(m.measure).run() == Case(BASE)


def test_what_only_the_races_found_is_not_taken(machine: Any, search: Any) -> None:
    """A build that was lucky in every race, and is slower in the block that decides."""

    class Lucky(machine):
        def measure(self, phase: str, cases: Any, turns: int) -> Any:
            self.build_costs = {("leaf", 4): 1.1 if phase == "decision" else 0.8}
            return super().measure(phase, cases, turns)

    s = search(Lucky(kernel_costs={("near", SHORT): 0.8}).measure)
    assert s.run() == Case.of(BASE, {"near": SHORT})
    assert [d.taken for d in s.decisions if d.question.startswith("build")] == [False]


def test_kernels_are_halved_and_run_longer(machine: Any, search: Any) -> None:
    m = machine(kernel_costs={("near", SHORT): 0.8})
    search(m.measure).run()
    raced = [(len(cases) - 1, turns) for phase, cases, turns in m.blocks if phase == "kernels"]
    per_turns = {turns: sum(n for n, t in raced if t == turns) for _, turns in raced}
    assert per_turns == {2: 12, 4: 6, 8: 3, 16: 2, 32: 1}


def test_what_is_refused_never_wins_and_says_why(machine: Any, search: Any) -> None:
    def refused(case: Case) -> str | None:
        short = any(kernel.stack == "16" for _, kernel in case.kernels)
        return "a stack overflowed" if short else None

    m = machine(kernel_costs={("near", SHORT): 0.5}, refused=refused)
    s = search(m.measure)
    assert s.run() == Case(BASE)
    assert {t.facts()["refused"] for t in s.tried if "stack of 16" in t.what} == {
        "a stack overflowed"
    }


def test_time_bounds_the_search(machine: Any, search: Any) -> None:
    costs = {("builder", "sah"): 0.9, ("leaf", 4): 0.85}
    full, short = machine(build_costs=costs), machine(build_costs=costs)
    search(full.measure).run()
    s = search(short.measure, budget_s=10.0)
    s.run()
    assert len(short.blocks) < len(full.blocks) and s.not_tried > 0
    ends = {"kernels": KERNELS_END, "one change of the build": BUILDS_END}
    for number, (phase, _, _) in enumerate(short.blocks):
        assert number < 10 * ends.get(phase, 1.0) or phase == "decision"
    assert s.spent_s == len(short.blocks) <= 10 + 1
    nothing = machine(build_costs=costs)
    assert search(nothing.measure, budget_s=0.0).run() == Case(BASE)
    assert nothing.blocks == []
