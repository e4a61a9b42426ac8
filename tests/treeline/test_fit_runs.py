"""The fit over runs of a frame: which runs are drawn, which a type is fitted over, and what is
refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import CheckFailed, UserError
from treeline.cli.fit import left_out_text, percent
from treeline.cost_fit import FEWEST_RUNS
from treeline.cost_terms import BY_NODES, BY_SUBGROUPS, CHAPTER, Counted
from treeline.fit_design import CHOSEN
from treeline.fit_runs import design_runs, fit_frame, lowest, time_runs
from treeline.fit_views import FitRun

Rng = np.random.Generator
# ms a frame, pixel, node, triangle test, any-hit call, hit, miss
FRAME, PIXEL, NODE, TEST, CALL, HIT, MISS = 0.5, 1e-4, 3e-5, 4e-5, 5e-4, 3e-4, 1e-4
STEP, LONGEST = 2e-4, 3e-2  # of a subgroup; a node of the longest ray
RUNS = [FitRun(turn=float(i)) for i in range(40)]


class MadeUp:
    """A bench whose frames cost exactly the sum by nodes; occlusion rays in some runs, shadow rays
    without an alpha test. `slow[turn]` disturbs all runs of a turn. With `lanes` the bench counts
    steps of subgroups, and they and the longest ray's nodes are what tracing costs."""

    def __init__(
        self, rng: Rng, stats: Any, slow: tuple[float, ...] = (1.0,), lanes: bool = False
    ) -> None:
        self.stats, self.slow, self.lanes = stats, slow, lanes
        self.counts = {run: self._counts(rng, i) for i, run in enumerate(RUNS)}
        self.timed: list[FitRun] = []

    def _counts(self, rng: Rng, number: int) -> Counted:
        rays = {}
        for name in ("reflection", "shadow", "occlusion")[: 3 if number % 3 else 2]:
            hits, misses, nodes = (int(n) for n in rng.integers(1_000, 50_000, 3))
            rays[name] = replace(
                self.stats.rays["reflection"],
                rays=hits + misses,
                hits=hits,
                misses=misses,
                nodes=10 * nodes,
                triangle_tests=int(rng.integers(1_000, 90_000)),
                any_hits=0 if name == "shadow" else int(rng.integers(0, 90_000)),
                subgroup_steps=None,
            )
            if self.lanes:
                steps, longest = (int(n) for n in rng.integers((1_000, 20), (30_000, 300)))
                rays[name] = replace(rays[name], subgroup_steps=steps, nodes_max=longest)
        return Counted(rays, int(rng.integers(1_000, 9_000)), f"hash {number}")

    def count(self, run: FitRun) -> Counted:
        return self.counts[run]

    def result_hash(self, run: FitRun) -> str:
        return self.counts[run].result_hash

    def time(self, run: FitRun) -> Any:
        self.timed.append(run)
        counted = self.counts[run]
        passes = {"update/refit": 0.25}
        for name, r in counted.rays.items():
            passes[f"rays/{name}"] = FRAME + PIXEL * counted.pixels
            walk = NODE * r.nodes
            if self.lanes:
                walk = STEP * r.subgroup_steps + LONGEST * r.nodes_max
            passes[f"traverse/{name}/0"] = walk + TEST * r.triangle_tests + CALL * r.any_hits
            if name == "reflection":
                passes["shade/reflection"] = FRAME + HIT * r.hits + MISS * r.misses
        factor = self.slow[self.timed.count(run) % len(self.slow)]
        return replace(self.stats, passes={n: factor * ms for n, ms in passes.items()})


@pytest.fixture
def bench(rng: Rng, make_stats: Callable[..., Any]) -> Callable[..., MadeUp]:
    return lambda *slow, lanes=False: MadeUp(rng, make_stats(50, 20, True), slow or (1.0,), lanes)


def values(found: Any) -> list[float | None]:
    return [item.value for item in found.coefficients]


def test_exact_costs_are_found_by_type(bench: Any, silent: Any) -> None:
    made = bench()
    design = design_runs(made, RUNS, silent)
    found = fit_frame(design, time_runs(made, design, 2, silent))
    assert len(design.runs) == CHOSEN and design.candidates == 40
    types = found.formulas[BY_NODES].types
    reflection, shadow, occlusion = (types[name] for name in ("reflection", "shadow", "occlusion"))
    assert isinstance(reflection, dict) and isinstance(shadow, dict)
    assert values(reflection["queues"]) == pytest.approx([FRAME, PIXEL])
    assert values(reflection["trace"]) == pytest.approx([NODE, TEST, CALL])
    assert values(reflection["shade"]) == pytest.approx([FRAME, HIT, MISS])
    assert "shade" not in shadow and values(shadow["trace"])[:2] == pytest.approx([NODE, TEST])
    assert shadow["trace"].coefficients[2].refused == "no run has any any-hit calls"
    assert isinstance(occlusion, dict)
    sent = ["occlusion" in counted.rays for counted in design.counted]
    assert occlusion["trace"].runs == sum(sent) < CHOSEN
    assert found.formulas[BY_NODES].left_out_ms < 1e-9 and found.update_ms == 0.25
    # One cost a ray does not say what these runs take: the nodes of a ray differ.
    chapter = found.formulas[CHAPTER]
    assert 0.1 < chapter.left_out_share < 2
    assert isinstance(chapter.types["reflection"], dict)
    names = [c.name for c in chapter.types["reflection"]["trace"].coefficients]
    assert names == ["rays", "any-hit calls"]
    facts = found.facts()
    trace = facts["formulas"][BY_NODES]["types"]["reflection"]["trace"]
    assert trace["coefficients"][0]["ns"] == pytest.approx(1e6 * NODE)
    assert len(facts["runs"]) == CHOSEN and facts["runs"][1]["types"]["shadow"]["any_hits"] == 0
    sums = {item["sum"]: item for item in facts["design"]["sums"]}
    assert sums["by nodes: shadow, trace"]["deciding_runs"]["any-hit calls"] == 0
    assert all(n > 3 for n in sums["by nodes: reflection, trace"]["deciding_runs"].values())
    assert not any("shadow, shade" in name for name in sums)


def test_where_subgroups_are_counted_their_steps_explain_tracing(bench: Any, silent: Any) -> None:
    assert BY_SUBGROUPS not in _fit(bench(), silent).formulas
    found = _fit(bench(lanes=True), silent)
    by_steps, by_nodes = found.formulas[BY_SUBGROUPS], found.formulas[BY_NODES]
    reflection = by_steps.types["reflection"]
    assert isinstance(reflection, dict)
    assert values(reflection["trace"]) == pytest.approx([STEP, TEST, CALL, LONGEST])
    assert by_steps.left_out_ms < 1e-9 < 0.1 < by_nodes.left_out_share
    stats = found.runs[0]["types"]["reflection"]
    assert stats["subgroup_steps"] > 0 and stats["nodes_max"] >= 20


def _fit(made: Any, silent: Any) -> Any:
    design = design_runs(made, RUNS, silent)
    return fit_frame(design, time_runs(made, design, 1, silent))


def test_runs_take_turns(bench: Any, silent: Any) -> None:
    made = bench()
    design = design_runs(made, RUNS, silent)
    measured = time_runs(made, design, 3, silent)
    runs = list(design.runs)
    assert made.timed == [*runs, *runs, *reversed(runs), *runs]
    assert [len(run.frames) for run in measured] == [3] * CHOSEN


def test_the_wall_clock_counts_by_the_quickest_turn(bench: Any, silent: Any) -> None:
    made = bench(1.7, 1.0, 2.5)
    design = design_runs(made, RUNS, silent)
    measured = time_runs(made, design, 3, silent)
    types = fit_frame(design, measured, lowest).formulas[BY_NODES].types
    assert isinstance(types["reflection"], dict)
    assert values(types["reflection"]["trace"])[0] == pytest.approx(NODE)
    types = fit_frame(design, measured).formulas[BY_NODES].types
    assert isinstance(types["reflection"], dict)
    assert values(types["reflection"]["trace"])[0] == pytest.approx(1.7 * NODE)


def test_the_frames_error_is_that_of_all_types_together(bench: Any, silent: Any) -> None:
    made = bench()
    design = design_runs(made, RUNS, silent)
    found = fit_frame(design, time_runs(made, design, 1, silent)).formulas[CHAPTER]
    errors = np.zeros(CHOSEN)
    for name, parts in found.types.items():
        assert isinstance(parts, dict)
        has = [name in counted.rays for counted in design.counted]
        for fitted in parts.values():
            errors[has] += fitted.left_out
    assert found.left_out_ms == pytest.approx(np.sqrt(np.mean(errors**2))) and errors.any()
    share = f"{100 * found.left_out_share:.1f}%"
    assert share in left_out_text(CHAPTER, found.facts())
    assert [percent(part) for part in (0.5, np.inf, np.nan)] == ["50.0", "-", "-"]


def test_a_type_in_few_runs_is_refused(bench: Any, silent: Any) -> None:
    made = bench()
    for run in RUNS[7:]:
        made.counts[run].rays.pop("occlusion", None)
    design = design_runs(made, RUNS, silent)
    measured = time_runs(made, design, 1, silent)
    found = fit_frame(design, measured).formulas[CHAPTER]
    few = sum("occlusion" in counted.rays for counted in design.counted)
    assert few < FEWEST_RUNS
    assert found.types["occlusion"] == f"{few} runs send occlusion rays, 8 are needed"
    assert isinstance(found.types["shadow"], dict) and np.isnan(found.left_out_ms)
    assert left_out_text(CHAPTER, found.facts()).startswith("Left out, chapter: not known")
    broken = replace(measured[4].frames[0], valid=False)
    with pytest.raises(UserError, match="a run dropped rays or failed"):
        fit_frame(design, [*measured[:4], replace(measured[4], frames=(broken,)), *measured[5:]])


def test_counted_and_timed_frames_hit_the_same(bench: Any, silent: Any) -> None:
    made = bench()
    design = design_runs(made, RUNS, silent)
    made.counts[design.runs[5]] = replace(made.counts[design.runs[5]], result_hash="another")
    with pytest.raises(CheckFailed, match=f"turned {design.runs[5].turn:g} degrees: the counted"):
        time_runs(made, design, 1, silent)


def test_mixed_passes_cannot_be_fitted(run: Any, one_line: Any) -> None:
    error = one_line(run("fit", "--passes", "mixed", "--quiet"), 2)
    assert "no time of their own with --passes mixed" in error


def test_the_command_fits_a_scene(run: Any, box: Any) -> None:
    words = ("--size", "8x6", "--frames", 1, "--json", "-", "--quiet", "--builder", "lbvh")
    result = run("fit", "--scene", box, *words, "--optimize", 0)
    facts = json.loads(result.stdout)
    counted = facts["runs"][0]["types"]["shadow"]["subgroup_steps"]
    known = {BY_SUBGROUPS} if counted is not None else set()
    assert set(facts["formulas"]) == {CHAPTER, BY_NODES} | known and len(facts["runs"]) == CHOSEN
    chapter = facts["formulas"][CHAPTER]["types"]["shadow"]["trace"]["coefficients"]
    assert chapter[1]["refused"] == "no run has any any-hit calls"
    assert facts["context"]["of_turns"] in ("minimum", "median")
    assert facts["design"]["candidates"] > facts["design"]["chosen"] == CHOSEN
