"""The chapter's cost formula fitted over runs of one scene that differ in what they send: sizes,
views, how rough a surface still reflects, occlusion rays, any-hit on and off.

Updates are measured and not modelled. A ray type is fitted over the runs that send it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from engine.gpu.errors import UserError
from engine.scene.camera import Camera
from treeline.cost_fit import FEWEST_RUNS, CostFit, TypeFit, fit_ray_type
from treeline.cost_model import TypeCost, costs, is_update
from treeline.measure import MeasuredFrame, Progress, SizeRun, measure_size, median


@dataclass(frozen=True, slots=True)
class FitRun:
    """One run: `scale` of the width and height, the view turned by so many degrees about the
    vertical, fields of FrameOptions that differ."""

    scale: float = 1.0
    turn: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"{name} {value}" for name, value in self.options.items()]
        turned = [f"turned {self.turn:g} degrees"] if self.turn else []
        return ", ".join([f"{self.scale:g} of the size", *turned, *parts])


_OCCLUSION = {"occlusion": True}
_OPAQUE = {"any_hit": "opaque"}
RUNS: tuple[FitRun, ...] = (
    FitRun(options=_OCCLUSION),
    FitRun(0.75),
    FitRun(0.5, options=_OCCLUSION),
    FitRun(turn=60.0, options=_OCCLUSION),
    FitRun(turn=-75.0, options=_OCCLUSION),
    FitRun(0.75, 180.0, _OCCLUSION),
    FitRun(0.75, options={"roughness_cutoff": 0.3, **_OCCLUSION}),
    FitRun(turn=60.0, options={"roughness_cutoff": 0.1}),
    FitRun(options=_OPAQUE | _OCCLUSION),
    FitRun(0.75, -75.0, _OPAQUE),
    FitRun(0.5, 120.0, _OPAQUE | _OCCLUSION),
    FitRun(turn=-140.0, options=_OCCLUSION),
)

# (the run, its width, its height, whether it counts) -> a frame
MakeRun = Callable[[FitRun, int, int, bool], MeasuredFrame]


@dataclass(frozen=True, slots=True)
class FrameFit:
    """`types` maps a ray type to its fit, or to why there is none; `left_out_ms` is that of all
    ray types' passes together, `left_out_share` of their mean, over the runs that every type is in;
    infinite or NaN where one of the fits says nothing."""

    types: dict[str, TypeFit | str]
    runs: tuple[dict[str, Any], ...]
    left_out_ms: float
    left_out_share: float
    update_ms: float

    def facts(self) -> dict[str, Any]:
        """As JSON (not finite numbers included)."""
        types: dict[str, Any] = {}
        for name, found in self.types.items():
            types[name] = {"refused": found} if isinstance(found, str) else _type_facts(found)
        return {
            "types": types,
            "left_out_ms": self.left_out_ms,
            "left_out_share": self.left_out_share,
            "build_update_cost_ms": self.update_ms,
            "runs": list(self.runs),
        }


def turned(camera: Camera, degrees: float) -> Camera:
    """The camera turned about the world's vertical where it stands."""
    angle = math.radians(degrees)
    rotation = np.eye(3)
    rotation[0, 0] = rotation[2, 2] = math.cos(angle)
    rotation[0, 2], rotation[2, 0] = math.sin(angle), -math.sin(angle)
    transform = np.array(camera.transform, np.float64)
    transform[:3, :3] = rotation @ transform[:3, :3]
    return replace(camera, transform=transform)


def measure_runs(
    make_run: MakeRun,
    size: tuple[int, int],
    frames: int,
    warmup: int,
    progress: Progress,
    warmup_ms: float = 0.0,
    runs: Sequence[FitRun] = RUNS,
) -> list[SizeRun]:
    """Every run timed, then counted."""
    found = []
    for run in runs:
        width, height = (max(1, round(side * run.scale)) for side in size)

        def make_frame(w: int, h: int, count: bool, run: FitRun = run) -> MeasuredFrame:
            return make_run(run, w, h, count)

        found.append(measure_size(make_frame, width, height, frames, warmup, progress, warmup_ms))
    return found


def fit_frame(measured: Sequence[SizeRun], runs: Sequence[FitRun] = RUNS) -> FrameFit:
    """The fit of every ray type over its runs. UserError for invalid runs."""
    if not all(run.valid for run in measured):
        raise UserError("a run dropped rays or failed: its costs explain nothing")
    by_run = [costs(run) for run in measured]
    names = list(dict.fromkeys(name for sample in by_run for name in sample))
    types: dict[str, TypeFit | str] = {}
    errors = np.zeros(len(measured))
    for name in names:
        places = [i for i, sample in enumerate(by_run) if name in sample]
        if len(places) < FEWEST_RUNS:
            types[name] = f"{len(places)} runs send {name} rays, {FEWEST_RUNS} are needed"
            errors += np.nan
            continue
        fitted = fit_ray_type([by_run[i][name] for i in places])
        types[name] = fitted
        for part in filter(None, (fitted.trace, fitted.shade)):
            errors[places] += part.left_out
    total = np.array([sum(c.trace_ms + c.shade_ms for c in s.values()) for s in by_run])
    left_out = float(np.sqrt(np.mean(errors**2)))
    return FrameFit(
        types,
        tuple(_run_facts(*each) for each in zip(runs, measured, by_run, strict=True)),
        left_out,
        left_out / float(total.mean()),
        median([median(run.pass_ms(is_update)) for run in measured]),
    )


def _run_facts(run: FitRun, measured: SizeRun, sample: Mapping[str, TypeCost]) -> dict[str, Any]:
    return {
        "run": str(run),
        "width": measured.width,
        "height": measured.height,
        "types": {
            name: {
                "rays": cost.rays,
                "hits": cost.hits,
                "misses": cost.misses,
                "any_hits": cost.any_hits,
                "trace_ms": cost.trace_ms,
                "shade_ms": cost.shade_ms,
            }
            for name, cost in sample.items()
        },
    }


def _type_facts(found: TypeFit) -> dict[str, Any]:
    facts = {"trace": _fit_facts(found.trace)}
    if found.shade is not None:
        facts["shade"] = _fit_facts(found.shade)
    return facts


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
