"""The cost of a frame's rays as one sum, fitted at two sizes and checked at a third.

After the ray tracing chapter, section 37.1:

    frame_ray_cost = sum over ray types of  ray_count * traversal_cost_per_ray
                                          + hit_count * hit_shader_cost
                                          + miss_count * miss_shader_cost
                     + build_update_cost

Times are from timed runs, hit and miss counts from counted runs at the same sizes. "Traversal"
holds every pass of a ray type but shading, ray generation included. The structure is built before
the frame; build_update_cost is what a moving scene's update passes took, and 0 where nothing moves.
It is measured and not modelled. Costs are milliseconds, coefficients milliseconds a ray (hit,
miss). Where ray types are traced mixed (`passes.mixed`) there is no such sum.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from passes.mixed import MIXED
from treeline.measure import SizeRun, median

# Hit and miss counts that are this close to proportional cannot be told apart by two sizes.
MAX_CONDITION = 30.0


def is_pass_of(ray_type: str, name: str) -> bool:
    """Whether a pass works for one ray type: its name is a path with the type in it."""
    return ray_type in name.split("/")


def is_shading_of(ray_type: str, name: str) -> bool:
    return name.split("/")[0] == "shade" and is_pass_of(ray_type, name)


def is_tracing_of(ray_type: str, name: str) -> bool:
    return is_pass_of(ray_type, name) and not is_shading_of(ray_type, name)


def is_traversal_of(ray_type: str, name: str) -> bool:
    return name.split("/")[0] == "traverse" and is_pass_of(ray_type, name)


def mixes_types(names: Iterable[str]) -> bool:
    """Whether one of the passes traces several ray types: then nobody knows a type's own time."""
    return any(name.split("/")[0] == "traverse" and name.split("/")[1] in MIXED for name in names)


def traversal_ms(passes: Mapping[str, float], ray_type: str) -> float:
    """What a frame's passes took to trace a type; NaN where types are mixed."""
    traversals = _traversals(tuple(passes), ray_type)
    if traversals is None:
        return float("nan")
    return sum([passes[name] for name in traversals])


@lru_cache(maxsize=64)
def _traversals(names: tuple[str, ...], ray_type: str) -> tuple[str, ...] | None:
    """Those of a frame's passes that trace a type; None where types are mixed."""
    if mixes_types(names):
        return None
    return tuple(name for name in names if is_traversal_of(ray_type, name))


def type_ms(passes: Mapping[str, float], ray_type: str) -> float:
    """What all of a type's passes took in a frame; NaN where types are mixed."""
    if mixes_types(passes):
        return float("nan")
    return sum(ms for name, ms in passes.items() if is_pass_of(ray_type, name))


def is_update(name: str) -> bool:
    return name.split("/")[0] == "update"


@dataclass(frozen=True, slots=True)
class TypeCost:
    """One ray type at one size: counts, and medians over the timed frames."""

    rays: int
    hits: int
    misses: int
    trace_ms: float
    shade_ms: float
    any_hits: int = 0


@dataclass(frozen=True, slots=True)
class TypeCoefficients:
    """Milliseconds a ray, a hit, a miss; `shared` where hit and miss have one coefficient."""

    traversal: float
    hit: float
    miss: float
    shared: bool


def costs(run: SizeRun) -> dict[str, TypeCost]:
    """What each ray type cost at one size."""
    result = {}
    for ray_type, counts in run.counted.rays.items():
        trace = run.pass_ms(partial(is_tracing_of, ray_type))
        shade = run.pass_ms(partial(is_shading_of, ray_type))
        result[ray_type] = TypeCost(
            counts.rays,
            counts.hits,
            counts.misses,
            median(trace),
            median(shade),
            counts.any_hits or 0,
        )
    return result


def fit(samples: Sequence[TypeCost]) -> TypeCoefficients:
    """Least squares through the origin over the sizes; no coefficient is negative."""
    rays = np.array([s.rays for s in samples], np.float64)
    trace = np.array([s.trace_ms for s in samples])
    counts = np.array([[s.hits, s.misses] for s in samples], np.float64)
    shade = np.array([s.shade_ms for s in samples])
    traversal = _slope(rays, trace)
    used = counts.any(axis=0)
    if used.all():
        scaled = counts / np.linalg.norm(counts, axis=0)
        singular = np.linalg.svd(scaled, compute_uv=False)
        if singular[-1] * MAX_CONDITION > singular[0]:
            hit, miss = np.linalg.lstsq(counts, shade, rcond=None)[0]
            if hit >= 0 and miss >= 0:
                return TypeCoefficients(traversal, float(hit), float(miss), shared=False)
    both = _slope(counts.sum(axis=1), shade)
    return TypeCoefficients(traversal, both, both, shared=True)


def _slope(counts: np.ndarray, times: np.ndarray) -> float:
    square = float(counts @ counts)
    return max(0.0, float(counts @ times) / square) if square else 0.0


def predict(coefficients: TypeCoefficients, cost: TypeCost) -> float:
    """The modelled milliseconds of one ray type."""
    return (
        cost.rays * coefficients.traversal
        + cost.hits * coefficients.hit
        + cost.misses * coefficients.miss
    )


@dataclass(frozen=True, slots=True)
class Prediction:
    """The model against the measurement, ms. `measured` sums the passes of all ray types;
    `residual` = measured - predicted. `terms` has each type's share of the prediction."""

    predicted: float
    measured: float
    coefficients: dict[str, TypeCoefficients]
    terms: dict[str, float]
    fit_sizes: tuple[str, ...]

    @property
    def residual(self) -> float:
        return self.measured - self.predicted


def predict_frame(main: SizeRun, smaller: Sequence[SizeRun]) -> Prediction:
    """Fits every ray type at the smaller sizes and predicts the main one."""
    here = costs(main)
    there = [costs(run) for run in smaller]
    coefficients = {t: fit([sample[t] for sample in there]) for t in here}
    terms = {t: predict(coefficients[t], here[t]) for t in here}
    measured = main.pass_ms(lambda name: any(is_pass_of(t, name) for t in here))
    return Prediction(
        predicted=sum(terms.values()),
        measured=median(measured),
        coefficients=coefficients,
        terms=terms,
        fit_sizes=tuple(f"{run.width}x{run.height}" for run in smaller),
    )
