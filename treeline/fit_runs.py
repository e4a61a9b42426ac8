"""A cost formula's coefficients from runs of one scene that differ in what they send.

Candidates (treeline/fit_views.py) are counted, some are chosen (treeline/fit_design.py), and these
take turns while they are timed, so that what the machine does meanwhile meets all of them. All
formulas of treeline/cost_terms.py are fitted to the same runs. Updates are measured and not
modelled. A ray type is fitted over the runs that send it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from engine.gpu.errors import CheckFailed, UserError
from passes.rays import BOUNCES, RAY_TYPES
from treeline.cost_fit import FEWEST_RUNS, CostFit, fit_costs
from treeline.cost_model import is_update
from treeline.cost_terms import (
    BY_NODES,
    FORMULAS,
    SHADING,
    Counted,
    Formula,
    Part,
    count_table,
    known_formulas,
)
from treeline.fit_design import SumCheck, check_sum, choose, decided_by_several
from treeline.fit_views import FitRun
from treeline.measure import Progress, median


class Bench(Protocol):
    """Draws runs: frame 0 of each, counted or timed (treeline/fit_bench.py)."""

    def count(self, run: FitRun) -> Counted: ...
    def time(self, run: FitRun) -> Any: ...
    def result_hash(self, run: FitRun) -> str: ...


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One chosen run: its counts, and FrameStats of its turns."""

    run: FitRun
    counted: Counted
    frames: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """The chosen runs with their counts, of so many candidates, and what is known of each sum."""

    runs: tuple[FitRun, ...]
    counted: tuple[Counted, ...]
    candidates: int
    checks: tuple[SumCheck, ...]

    def facts(self) -> dict[str, Any]:
        return {
            "candidates": self.candidates,
            "chosen": len(self.runs),
            "sums": [check.facts() for check in self.checks],
        }


@dataclass(frozen=True, slots=True)
class FormulaFit:
    """`types` maps a ray type to the fit of each part of the formula, or to why there is none;
    `left_out_ms` is that of all of them together, `left_out_share` of their mean, over the runs
    that every type is in; infinite or NaN where one of the fits says nothing."""

    types: dict[str, dict[str, CostFit] | str]
    left_out_ms: float
    left_out_share: float

    def facts(self) -> dict[str, Any]:
        types: dict[str, Any] = {}
        for name, found in self.types.items():
            if isinstance(found, str):
                types[name] = {"refused": found}
            else:
                types[name] = {part: _fit_facts(fitted) for part, fitted in found.items()}
        return {
            "types": types,
            "left_out_ms": self.left_out_ms,
            "left_out_share": self.left_out_share,
        }


@dataclass(frozen=True, slots=True)
class FrameFit:
    """Of the runs of a design, by formula."""

    formulas: dict[str, FormulaFit]
    design: Design
    runs: tuple[dict[str, Any], ...]
    update_ms: float

    def facts(self) -> dict[str, Any]:
        """As JSON (not finite numbers included)."""
        return {
            "formulas": {name: found.facts() for name, found in self.formulas.items()},
            "design": self.design.facts(),
            "build_update_cost_ms": self.update_ms,
            "runs": list(self.runs),
        }


def design_runs(bench: Bench, candidates: Sequence[FitRun], progress: Progress) -> Design:
    """Counts all candidates, and chooses."""
    progress.begin("counting candidates", len(candidates))
    counted = []
    for run in candidates:
        counted.append(bench.count(run))
        progress.advance(str(run))
    sums = _sums(counted)
    tables = [count_table(part, ray_type, counted) for _, ray_type, part in sums]
    chosen = decided_by_several(tables, choose(tables))
    checks = [
        check_sum(f"{formula}: {ray_type}, {part.name}", part.terms, table[chosen])
        for (formula, ray_type, part), table in zip(sums, tables, strict=True)
    ]
    return Design(
        tuple(candidates[i] for i in chosen),
        tuple(counted[i] for i in chosen),
        len(candidates),
        tuple(checks),
    )


def _sums(counted: Sequence[Counted]) -> list[tuple[str, str, Part]]:
    """(formula, ray type, part) of every sum that may be fitted; any-hit rays have no shading."""
    names = dict.fromkeys(name for run in counted for name in run.rays)
    shaded = {ray.name for ray in (*RAY_TYPES, *BOUNCES) if not ray.any_hit}
    return [
        (formula, name, part)
        for formula, parts in known_formulas(counted).items()
        for name in names
        for part in parts
        if part.passes != SHADING or name in shaded
    ]


def time_runs(
    bench: Bench, design: Design, turns: int, progress: Progress, warmup_ms: float = 0.0
) -> list[TimedRun]:
    """`turns` timed frames of each run, forwards and backwards. CheckFailed where a timed frame hit
    something else than the counted one."""
    progress.begin("timing", (turns + 1) * len(design.runs))
    for run, counted in zip(design.runs, design.counted, strict=True):  # which also warms up
        bench.time(run)
        if bench.result_hash(run) != counted.result_hash:
            raise CheckFailed(f"{run}: the counted run's hits differ from the timed run's")
        progress.advance(str(run))
    start = time.perf_counter()
    while 1e3 * (time.perf_counter() - start) < warmup_ms:
        bench.time(design.runs[0])
    frames: list[list[Any]] = [[] for _ in design.runs]
    for turn in range(turns):
        for place in range(len(frames))[:: -1 if turn % 2 else 1]:
            frames[place].append(bench.time(design.runs[place]))
            progress.advance(str(design.runs[place]))
    return [
        TimedRun(run, counted, tuple(drawn))
        for run, counted, drawn in zip(design.runs, design.counted, frames, strict=True)
    ]


def lowest(values: Sequence[float]) -> float:
    """Of a CPU driver's turns: what else the machine does only adds to the wall clock's."""
    return min(values)


def fit_frame(
    design: Design, measured: Sequence[TimedRun], of_turns: Callable[..., float] = median
) -> FrameFit:
    """Every formula over the same runs, each by `of_turns` of its frames. UserError for invalid
    ones."""
    if not all(stats.valid and not stats.dropped for run in measured for stats in run.frames):
        raise UserError("a run dropped rays or failed: its costs explain nothing")
    formulas = known_formulas([run.counted for run in measured])
    return FrameFit(
        {name: _fit_formula(parts, measured, of_turns) for name, parts in formulas.items()},
        design,
        tuple(_run_facts(run, of_turns) for run in measured),
        median([_update_ms(run) for run in measured]),
    )


def _fit_formula(
    formula: Formula, measured: Sequence[TimedRun], of_turns: Callable[..., float]
) -> FormulaFit:
    types: dict[str, dict[str, CostFit] | str] = {}
    errors, total = np.zeros(len(measured)), np.zeros(len(measured))
    for name in dict.fromkeys(name for run in measured for name in run.counted.rays):
        places = [i for i, run in enumerate(measured) if name in run.counted.rays]
        if len(places) < FEWEST_RUNS:
            types[name] = f"{len(places)} runs send {name} rays, {FEWEST_RUNS} are needed"
            errors += np.nan
            continue
        runs = [measured[i] for i in places]
        parts = {}
        for part in formula:
            ms = np.array([part.ms(name, run.frames, of_turns) for run in runs])
            if not ms.any():
                continue  # no pass does this for the type
            counts = count_table(part, name, [run.counted for run in runs])
            parts[part.name] = fit_costs(counts, ms, part.terms)
            errors[places] += parts[part.name].left_out
            total[places] += ms
        types[name] = parts
    left_out = float(np.sqrt(np.mean(errors**2)))
    return FormulaFit(types, left_out, left_out / float(total.mean()))


def _update_ms(run: TimedRun) -> float:
    return median(
        [sum(ms for name, ms in stats.passes.items() if is_update(name)) for stats in run.frames]
    )


def _run_facts(measured: TimedRun, of_turns: Callable[..., float]) -> dict[str, Any]:
    types = {}
    for name, stats in measured.counted.rays.items():
        parts = FORMULAS[BY_NODES]
        ms = {part.name: part.ms(name, measured.frames, of_turns) for part in parts}
        types[name] = {
            "rays": stats.rays,
            "nodes": stats.nodes,
            "triangle_tests": stats.triangle_tests,
            "hits": stats.hits,
            "misses": stats.misses,
            "any_hits": stats.any_hits or 0,
            "nodes_max": stats.nodes_max,
            "subgroup_steps": stats.subgroup_steps,
            "subgroup_lanes": stats.subgroup_lanes,
            "ms": ms,
        }
    return {"run": str(measured.run), "pixels": measured.counted.pixels, "types": types}


def _fit_facts(found: CostFit) -> dict[str, Any]:
    return {
        "coefficients": [
            {
                "term": item.name,
                "ns": _ns(item.value),
                "interval_ns": None if item.low is None else [_ns(item.low), _ns(item.high)],
                "refused": item.refused or None,
            }
            for item in found.coefficients
        ],
        "rank": found.rank,
        "runs": found.runs,
        "residual_ms": found.residual_ms,
        "left_out_ms": found.left_out_ms,
        "left_out_share": found.left_out_share,
    }


def _ns(ms: float | None) -> float | None:
    return None if ms is None else 1e6 * ms
