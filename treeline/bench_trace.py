"""Mrays/s of the traversal kernel: ray sets against kernel variants, interleaved, hits checked.

One repeat dispatches every variant of a ray set once in one submission, so that a change of clock
or of load meets all of them alike; the same work warms the GPU up before. Only the variants of one
ray set are alive at a time: many traversal pipelines at once slow each other down on some drivers.
Times are GPU milliseconds from timestamps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.trace_rays import STACK_SIZES, RayTracer, Variant, fit_variant, time_interleaved
from bvh.oracle import trace as oracle_trace
from bvh.rays import MISS_ID, RayFlags, Rays
from bvh.raysets import RaySet
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device
from treeline.measure import Progress, median, p95
from treeline.report_row import make_row, samples

T_TOLERANCE = 1e-4  # relative, as between the oracle and an independent tracer
# Rays that may differ before the check fails: the oracle works in another precision, so rays
# through an edge or between coplanar triangles may go either way.
ALLOWED_DIFFERENCE = 1e-4


@dataclass(frozen=True, slots=True)
class TraceTimes:
    """One ray set through one variant: [repeats] ms, and the check of its hits.

    `different` rays differ from the ray set's expected hits. A structure that moves a mesh to
    its middle rounds the vertices anew, which a short ray can feel; `unexplained` ones differ
    from the oracle over this structure's own bytes, too.
    """

    name: str
    rayset: RaySet
    variant: Variant
    ms: NDArray[np.float64]
    hits: int
    different: int
    unexplained: int
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.failures and self.unexplained <= ALLOWED_DIFFERENCE * len(self.rayset.rays)

    @property
    def mrays_per_s(self) -> NDArray[np.float64]:
        """[repeats]"""
        return len(self.rayset.rays) / (1e3 * self.ms)


def variants(
    bvh: SceneBvh, any_hit: bool, traversal: str = "fast", loops: str = "one"
) -> list[Variant]:
    """The kernels worth comparing for a structure; the first is what the frame uses. `loops` are
    that one's (bvh/gpu/default_kernel.py).

    A ray set's expected hits take every triangle as opaque, so no variant tests alpha.
    """
    given = Variant("", any_hit=any_hit, traversal=traversal, loops=loops)
    base = fit_variant(given, bvh, has_alpha=False)
    sorted_, unsorted = replace(base, name="sorted"), replace(base, name="unsorted", sort=False)
    found = [unsorted, sorted_] if any_hit else [sorted_, unsorted]
    if traversal == "fast":
        others = {"one": "one loop", "two": "while-while", "three": "three loops"}
        found += [
            replace(sorted_, name=name, loops=other)
            for other, name in others.items()
            if other not in (loops, "three" if loops == "one" else None)
        ]
    if not base.two_level:
        found.append(replace(sorted_, name="through the TLAS", two_level=True))
    return found


def bench(
    device: Device,
    bvh: SceneBvh,
    raysets: Sequence[tuple[str, RaySet]],
    repeats: int,
    warmup_ms: float,
    progress: Progress,
    traversal: str = "fast",
) -> list[TraceTimes]:
    """Times every variant on every (label, ray set), after `warmup_ms` of the same work."""
    buffer = device.upload("bvh", bvh.words)
    loops = default_kernel(device.info).loops
    results = []
    for label, rayset in raysets:
        progress.begin(f"{label}: {len(rayset.rays):,} rays")
        tracers = [
            fitting_tracer(device, bvh, variant, rayset.rays, buffer)
            for variant in variants(bvh, rayset.any_hit, traversal, loops)
        ]
        ms = time_interleaved(device, tracers, repeats, warmup_ms)
        progress.advance()
        for index, tracer in enumerate(tracers):
            trace = tracer.read()
            different, unexplained = check_hits(bvh, rayset, trace.hits)
            results.append(
                TraceTimes(
                    name=f"trace/{label}/{tracer.variant.name}",
                    rayset=rayset,
                    variant=tracer.variant,
                    ms=ms[index],
                    hits=int((trace.hits["object"] != MISS_ID).sum()),
                    different=different,
                    unexplained=unexplained,
                    failures=trace.failures,
                )
            )
    return results


def fitting_tracer(
    device: Device, bvh: SceneBvh, variant: Variant, rays: Rays, buffer: Any
) -> RayTracer:
    """The variant with the smallest stack that these rays do not overrun, rays uploaded. The
    kernel leaves out run-time checks: the bytes are our builder's or were validated."""
    for stack in STACK_SIZES:
        tracer = RayTracer(device, bvh.words, variant, bvh_buffer=buffer, stack=stack, trusted=True)
        if not tracer.trace(rays).failures:
            break
    return tracer


def check_hits(bvh: SceneBvh, rayset: RaySet, hits: NDArray[Any]) -> tuple[int, int]:
    """How many hits are not the expected ones, and how many of those the oracle does not find
    over the structure's own bytes either."""
    wrong = np.flatnonzero(differ(hits, rayset.expected_t, rayset.any_hit))
    if not len(wrong):
        return 0, 0
    own = oracle_trace(bvh.words, rayset.rays[wrong], flags=RayFlags.OPAQUE)
    return len(wrong), int(differ(hits[wrong], own.t, rayset.any_hit).sum())


def differ(hits: NDArray[Any], expected_t: NDArray[np.float32], any_hit: bool) -> Any:
    """[n] bool: hit or miss is not the expected one, or t is not. Any-hit traversal may stop at
    another hit, so there only hit or miss counts."""
    hit = hits["object"] != MISS_ID
    expected_hit = np.isfinite(expected_t)
    wrong = hit != expected_hit
    if not any_hit:
        both = hit & expected_hit
        expected = expected_t[both].astype(np.float64)
        error = np.abs(hits["t"][both].astype(np.float64) - expected)
        wrong[both] |= error > T_TOLERANCE * np.abs(expected)
    return wrong


def trace_row(times: TraceTimes) -> dict[str, Any]:
    """A google-benchmark row: median and spread over the repeats."""
    row = make_row(times.name, len(times.ms), median(times.ms))
    rate = times.mrays_per_s
    row.update(
        real_time_p95=p95(times.ms),
        samples=samples(times.ms),
        kind=times.rayset.kind,
        variant=times.variant.name,
        rays=len(times.rayset.rays),
        hits=times.hits,
        mrays_per_s=median(rate),
        mrays_per_s_low=float(np.percentile(rate, 25)),
        mrays_per_s_high=float(np.percentile(rate, 75)),
        different=times.different,
        unexplained=times.unexplained,
        failures=list(times.failures),
        passed=times.passed,
    )
    return row
