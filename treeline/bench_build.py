"""Builders against scenes: GPU time of a build and of its phases, what came of it, what it costs
rays.

A scene is baked to world space as one BLAS, which is built from triangles in a buffer to guest
bytes in another. One repeat builds every case once, so that a change of clock or of load meets
all alike; phases are timed in passes of their own, in other repeats, so their sum is more than
the whole. Times are GPU timestamps; on CPU drivers the wall clock, each pass submitted and waited
for; of builds on the CPU the wall clock, once. Rays are counted by the kernel that the frame uses,
in a run that is not timed.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.blas import Blas, BuildOptions
from bvh.build import build_blas
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.trace_rays import STACK_SIZES, RayTracer, Variant, fit_variant, time_interleaved
from bvh.raysets import RaySet
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from bvh.validate import validate
from engine.gpu.device import Device
from engine.gpu.errors import CheckFailed, UserError
from treeline.bench_trace import check_hits
from treeline.measure import Progress
from treeline.pass_times import Encode, spread, time_passes
from treeline.structure_rows import structure_row

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """A name and what is built. Near pairing is the GPU's build, best pairing the CPU's."""

    name: str
    options: BuildOptions

    @property
    def on_cpu(self) -> bool:
        return self.options.pairing == "best"


def parse_case(text: str, leaf: int, nodes: str) -> Case:
    """`[cpu:]builder[+rounds][/greedy]`, such as `ploc`, `cpu:sah+30`, `lbvh/greedy`: a builder,
    rounds of reinsertion after it, and the collapse; `cpu:` for the build on the CPU with the best
    pairs of all. UserError for anything else."""
    builder, _, collapse = text.removeprefix("cpu:").partition("/")
    builder, plus, rounds = builder.partition("+")
    if plus and not rounds.isdecimal():
        raise UserError(f"a case is [cpu:]builder[+rounds][/greedy], not '{text}'")
    options = BuildOptions(
        builder=builder,
        nodes=nodes,
        leaf=leaf,
        collapse=collapse or "best",
        reinsertion=int(rounds or 0),
        pairing="best" if text.startswith("cpu:") else "near",
    )
    return Case(text, options)


@dataclass(frozen=True, slots=True)
class BuildResult:
    """One case over one scene. `whole_ms` is [repeats], `phase_ms` [phases, repeats]."""

    case: Case
    blas: Blas
    bvh: SceneBvh
    phases: tuple[str, ...]
    whole_ms: F64
    phase_ms: F64
    scratch_bytes: int
    dispatches: int


def random_triangles(count: int, seed: int = 1) -> F32:
    """[n, 3, 3] halves of parallelograms with sides from 1e-4 to 1e-1 in a unit cube."""
    rng = np.random.default_rng(seed)
    quads = -(-count // 2)
    size = 10.0 ** rng.uniform(-4, -1, (quads, 1, 1))
    corner, sides = rng.random((quads, 1, 3)), size * rng.normal(size=(quads, 2, 3))
    a, b, c = corner[:, 0], corner[:, 0] + sides[:, 0], corner[:, 0] + sides[:, 1]
    halves = np.stack([np.stack([a, b, c], axis=1), np.stack([b, b + c - a, c], axis=1)], axis=1)
    return halves.reshape(-1, 3, 3)[:count].astype(np.float32)


class _CountedScope:
    """Stands for a compute pass and counts its dispatches."""

    def __init__(self) -> None:
        self.dispatches = 0

    def set_pipeline(self, pipeline: Any) -> None: ...
    def set_bind_group(self, *values: Any) -> None: ...

    def dispatch_workgroups(self, *groups: int) -> None:
        self.dispatches += 1

    def dispatch_workgroups_indirect(self, *arguments: Any) -> None:
        self.dispatches += 1


def build_all(
    device: Device,
    triangles: F32,
    cases: Sequence[Case],
    repeats: int,
    warmup_ms: float,
    progress: Progress,
) -> list[BuildResult]:
    """Builds every case `repeats` times after a warm-up. CheckFailed, naming the case, for a
    container that `validate` refuses."""
    given = _whole_mesh(triangles)
    builders: list[GpuBlasBuilder | None] = []
    scratch = []
    for case in cases:
        before = device.allocated_bytes
        builder = None
        if not case.on_cpu:
            progress.begin(f"{case.name}: preparing")
            builder = GpuBlasBuilder(device, len(triangles), case.options)
            builder.upload(*given)
        builders.append(builder)
        scratch.append(device.allocated_bytes - before)
    progress.begin(f"builds on the GPU, {repeats} times")
    passes = [builder.encode for builder in builders if builder]
    whole = iter(time_passes(device, passes, repeats, warmup_ms))
    results = []
    for case, builder, scratch_bytes in zip(cases, builders, scratch, strict=True):
        phases: dict[str, Encode] = {}
        phase_ms, dispatches = np.empty((0, 1)), 0
        if builder is None:
            progress.begin(f"{case.name}: on the CPU")
            blas = build_blas(*given, case.options)
            whole_ms = np.array([blas.stats.build_ms])
        else:
            progress.begin(f"{case.name}: phases")
            phases, whole_ms = builder.phases(), next(whole)
            phase_ms = time_passes(device, list(phases.values()), repeats, warmup_ms)
            blas = builder.read()
            counted = _CountedScope()
            builder.encode(counted)
            dispatches = counted.dispatches
        bvh = assemble([blas], ["scene"], [BvhInstance(0)], case.options)
        faults = validate(bvh)
        if faults:
            raise CheckFailed(f"{case.name}: {faults[0]}")
        results.append(
            BuildResult(
                case, blas, bvh, tuple(phases), whole_ms, phase_ms, scratch_bytes, dispatches
            )
        )
    return results


def _whole_mesh(triangles: F32) -> tuple[F32, Any, Any, Any]:
    """As `build_blas` takes it: one opaque geometry, primitives by number."""
    count = len(triangles)
    numbers = np.arange(count, dtype=np.uint32)
    return triangles, np.zeros(count, np.uint32), numbers, np.ones(1, np.bool_)


def trace_all(
    device: Device,
    results: Sequence[BuildResult],
    raysets: Sequence[tuple[str, RaySet]],
    repeats: int,
    warmup_ms: float,
    progress: Progress,
) -> list[dict[str, Any]]:
    """One row for each ray set and case: box nodes and triangle tests a ray, and Mrays/s where
    the device has timestamps. Hits are checked against the ray set's."""
    buffers = [device.upload("bvh", result.bvh.words) for result in results]
    rows = []
    for label, rayset in raysets:
        progress.begin(f"{label}: {len(rayset.rays):,} rays")
        given = Variant(
            label,
            any_hit=rayset.any_hit,
            sort=not rayset.any_hit,
            loops=default_kernel(device.info).loops,
        )
        counts, tracers, differences, stacks = [], [], [], []
        for result, buffer in zip(results, buffers, strict=True):
            variant = fit_variant(given, result.bvh, has_alpha=False)
            for stack in STACK_SIZES:
                counter = RayTracer(
                    device,
                    result.bvh.words,
                    variant,
                    counted=True,
                    bvh_buffer=buffer,
                    stack=stack,
                )
                counted = counter.trace(rayset.rays)
                if not counted.failures:
                    break
            if counted.failures:
                raise CheckFailed(f"{result.case.name}, {label}: {'; '.join(counted.failures)}")
            counts.append(counted.counters)
            stacks.append(stack)
            differences.append(check_hits(result.bvh, rayset, counted.hits))
            if device.timing_source != "wall-clock":
                tracer = RayTracer(
                    device,
                    result.bvh.words,
                    variant,
                    bvh_buffer=buffer,
                    stack=stack,
                    trusted=True,
                )
                tracer.upload(rayset.rays)
                tracers.append(tracer)
        rates = None
        if tracers:
            rates = len(rayset.rays) / (1e3 * time_interleaved(device, tracers, repeats, warmup_ms))
        for index, (result, counters) in enumerate(zip(results, counts, strict=True)):
            assert counters is not None
            row = {
                "kind": label,
                "case": result.case.name,
                "rays": len(rayset.rays),
                "nodes": counters["nodes"] / len(rayset.rays),
                "triangle_tests": counters["triangle_tests"] / len(rayset.rays),
                "stack": stacks[index],
                "different": differences[index][0],
                "unexplained": differences[index][1],
            }
            if rates is not None:
                row["mrays_per_s"] = spread(rates[index])
            rows.append(row)
    return rows


def case_row(result: BuildResult, samples: int) -> dict[str, Any]:
    """The row of a record. `samples` surface points estimate EPO; 0 leaves it out."""
    return {
        "case": result.case.name,
        "options": asdict(result.case.options),
        "ms": spread(result.whole_ms),
        "phases_ms": {
            name: spread(ms) for name, ms in zip(result.phases, result.phase_ms, strict=True)
        },
        "dispatches": result.dispatches,
        "scratch_bytes": result.scratch_bytes,
        **structure_row(result.blas.words, result.blas.stats, samples),
    }
