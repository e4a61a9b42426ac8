"""The fit over runs of a frame: which runs a type is fitted over, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.camera import look_at
from treeline.cost_fit import FEWEST_RUNS, TypeFit
from treeline.fit_runs import RUNS, FitRun, fit_frame, measure_runs, turned

Rng = np.random.Generator
RAY, CALL, HIT, MISS = 2e-4, 5e-4, 3e-4, 1e-4  # ms


def made_up(rng: Rng, make_stats: Callable[..., Any], noise: float = 0.0) -> list[Any]:
    """Runs of RUNS whose frames cost exactly the sum; occlusion rays in some, shadow rays without
    an alpha test."""
    found = []
    for run in RUNS:
        counted, timed = (make_stats(50, 20, count) for count in (True, False))
        types = ["reflection", "shadow", *(["occlusion"] if "occlusion" in run.options else [])]
        passes, rays = {}, {}
        for name in types:
            hits, misses = (int(n) for n in rng.integers(1_000, 50_000, 2))
            calls = 0 if name == "shadow" else int(rng.integers(0, 90_000))
            rays[name] = replace(
                counted.rays["reflection"],
                **{"rays": hits + misses, "hits": hits, "misses": misses, "any_hits": calls},
            )
            took = RAY * (hits + misses) + CALL * calls
            passes[f"traverse/{name}/0"] = took * (1 + noise * rng.standard_normal())
            if name == "reflection":
                passes["shade/reflection"] = HIT * hits + MISS * misses
        counted = replace(counted, rays=rays, passes=passes)
        timed = replace(timed, rays=rays, passes={**passes, "update/refit": 0.25})

        def pass_ms(belongs: Callable[[str], bool], passes: Any = timed.passes) -> Any:
            return np.array([sum(ms for name, ms in passes.items() if belongs(name))])

        found.append(
            SimpleNamespace(counted=counted, pass_ms=pass_ms, valid=True, width=50, height=20)
        )
    return found


def values(found: Any) -> list[float | None]:
    return [item.value for item in found.coefficients]


def test_there_are_enough_runs_for_every_type() -> None:
    assert len(RUNS) >= FEWEST_RUNS
    assert sum("occlusion" in run.options for run in RUNS) >= FEWEST_RUNS
    assert len({str(run) for run in RUNS}) == len(RUNS)


def test_exact_costs_are_found_by_type(rng: Rng, make_stats: Any) -> None:
    found = fit_frame(made_up(rng, make_stats))
    reflection, shadow, occlusion = (
        found.types[name] for name in ("reflection", "shadow", "occlusion")
    )
    assert isinstance(reflection, TypeFit) and isinstance(shadow, TypeFit)
    assert values(reflection.trace) == pytest.approx([RAY, CALL])
    assert reflection.shade is not None
    assert values(reflection.shade) == pytest.approx([HIT, MISS])
    assert shadow.shade is None and shadow.trace.coefficients[0].value == pytest.approx(RAY)
    assert shadow.trace.coefficients[1].refused == "no run has any any-hit calls"
    assert isinstance(occlusion, TypeFit)
    assert occlusion.trace.runs == sum("occlusion" in run.options for run in RUNS)
    assert found.left_out_ms < 1e-9 and found.update_ms == 0.25
    facts = found.facts()
    assert facts["types"]["reflection"]["trace"]["coefficients"][0]["ns"] == pytest.approx(200)
    assert len(facts["runs"]) == len(RUNS) and "any_hit opaque" in facts["runs"][9]["run"]


def test_the_frames_error_is_that_of_all_types_together(rng: Rng, make_stats: Any) -> None:
    found = fit_frame(made_up(rng, make_stats, noise=0.05))
    errors = np.zeros(len(RUNS))
    for name, item in found.types.items():
        assert isinstance(item, TypeFit)
        has = [name != "occlusion" or "occlusion" in run.options for run in RUNS]
        errors[has] += item.trace.left_out
        errors += 0.0 if item.shade is None else item.shade.left_out
    assert found.left_out_ms == pytest.approx(np.sqrt(np.mean(errors**2))) and errors.any()
    assert 0 < found.left_out_share < 0.2


def test_a_type_in_few_runs_is_refused(rng: Rng, make_stats: Any) -> None:
    runs = made_up(rng, make_stats)
    for run in runs[3:]:
        run.counted.rays.pop("occlusion", None)
    found = fit_frame(runs)
    assert found.types["occlusion"] == "2 runs send occlusion rays, 8 are needed"
    assert isinstance(found.types["shadow"], TypeFit) and np.isnan(found.left_out_ms)
    runs[4].valid = False
    with pytest.raises(UserError, match="a run dropped rays or failed"):
        fit_frame(runs)


def test_runs_have_the_sizes_that_they_say(fake_frame: Any, silent: Any) -> None:
    seen: list[tuple[str, int, int]] = []

    def make(run: FitRun, width: int, height: int, count: bool) -> Any:
        seen.append((str(run), width, height))
        return fake_frame(width, height, count)

    found = measure_runs(make, (80, 40), 2, 0, silent, runs=RUNS[:3])
    assert [(run.width, run.height) for run in found] == [(80, 40), (60, 30), (40, 20)]
    assert len(seen) == 6 and seen[0][0] == "1 of the size, occlusion True"


def test_a_turned_camera_stays_where_it_is() -> None:
    camera = look_at(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 0.0]), 1.0)
    right = turned(camera, -90.0)
    assert right.position == pytest.approx(camera.position)
    assert -right.transform[:3, 2] == pytest.approx([1.0, 0.0, 0.0], abs=1e-12)
    assert turned(turned(camera, 120), 240).transform == pytest.approx(camera.transform)


def test_mixed_passes_cannot_be_fitted(run: Any, one_line: Any) -> None:
    error = one_line(run("fit", "--passes", "mixed", "--quiet"), 2)
    assert "no time of their own with --passes mixed" in error
