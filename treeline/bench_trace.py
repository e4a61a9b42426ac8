"""Mrays/s of the traversal kernel: ray sets against kernel variants, interleaved, hits checked.

One repeat dispatches every variant of a ray set once, so that a change of clock or of load meets
all of them alike. Only the variants of one ray set are alive at a time: many traversal pipelines
at once slow each other down on some drivers. Times are GPU milliseconds from timestamps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.trace_rays import RayTracer, Variant
from bvh.raysets import RaySet
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device
from treeline.measure import Progress, median, p95
from treeline.report import make_row

T_TOLERANCE = 1e-4  # relative, as between the oracle and an independent tracer
# Rays that may differ before the check fails: the oracle works in another precision, so rays
# through an edge or between coplanar triangles may go either way.
ALLOWED_DIFFERENCE = 1e-4
MISS_ID = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class TraceTimes:
    """One ray set through one variant: [repeats] ms, and how many rays the oracle disputes."""

    name: str
    rayset: RaySet
    variant: Variant
    ms: NDArray[np.float64]
    hits: int
    different: int
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.failures and self.different <= ALLOWED_DIFFERENCE * len(self.rayset.rays)

    @property
    def mrays_per_s(self) -> NDArray[np.float64]:
        """[repeats]"""
        return len(self.rayset.rays) / (1e3 * self.ms)


def variants(bvh: SceneBvh, any_hit: bool) -> list[Variant]:
    """The kernels worth comparing for a structure.

    A ray set's expected hits take every triangle as opaque, so no variant tests alpha.
    """
    has_fp16 = any(stats.nodes_fp16 for stats in bvh.blas_stats)
    base = Variant("sorted", any_hit=any_hit, has_fp16=has_fp16, has_alpha=False)
    return [
        base,
        replace(base, name="unsorted", sort=False),
        replace(base, name="while-while", while_while=True),
    ]


def bench(
    device: Device,
    bvh: SceneBvh,
    raysets: Sequence[tuple[str, RaySet]],
    repeats: int,
    warmup: int,
    progress: Progress,
) -> list[TraceTimes]:
    """Times every variant on every (label, ray set)."""
    buffer = device.upload("bvh", bvh.words)
    results = []
    for label, rayset in raysets:
        kinds = variants(bvh, rayset.any_hit)
        progress.begin(f"{label}: {len(rayset.rays):,} rays", repeats)
        tracers = [RayTracer(device, bvh.words, v, bvh_buffer=buffer) for v in kinds]
        for tracer in tracers:
            tracer.upload(rayset.rays)
            for _ in range(warmup):
                tracer.dispatch()
        ms = np.empty((len(tracers), repeats))
        for repeat in range(repeats):
            for index, tracer in enumerate(tracers):
                ms[index, repeat] = tracer.dispatch()
            progress.advance()
        for index, tracer in enumerate(tracers):
            trace = tracer.read()
            hit = trace.hits["object"] != MISS_ID
            results.append(
                TraceTimes(
                    name=f"trace/{label}/{kinds[index].name}",
                    rayset=rayset,
                    variant=kinds[index],
                    ms=ms[index],
                    hits=int(hit.sum()),
                    different=count_different(rayset, hit, trace.hits["t"]),
                    failures=trace.failures,
                )
            )
    return results


def count_different(rayset: RaySet, hit: NDArray[np.bool_], t: NDArray[np.float32]) -> int:
    """Rays whose hit or miss, or whose t, is not the expected one. Any-hit traversal may stop at
    another hit, so there only hit or miss counts."""
    expected_hit = np.isfinite(rayset.expected_t)
    wrong = hit != expected_hit
    if not rayset.any_hit:
        both = hit & expected_hit
        expected = rayset.expected_t[both].astype(np.float64)
        error = np.abs(t[both].astype(np.float64) - expected)
        wrong[both] |= error > T_TOLERANCE * np.abs(expected)
    return int(wrong.sum())


def trace_row(times: TraceTimes) -> dict[str, Any]:
    """A google-benchmark row: median and spread over the repeats."""
    row = make_row(times.name, len(times.ms), median(times.ms))
    rate = times.mrays_per_s
    row.update(
        real_time_p95=p95(times.ms),
        kind=times.rayset.kind,
        variant=times.variant.name,
        rays=len(times.rayset.rays),
        hits=times.hits,
        mrays_per_s=median(rate),
        mrays_per_s_low=float(np.percentile(rate, 25)),
        mrays_per_s_high=float(np.percentile(rate, 75)),
        different=times.different,
        failures=list(times.failures),
        passed=times.passed,
    )
    return row
