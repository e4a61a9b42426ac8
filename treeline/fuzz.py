"""`treeline bench fuzz`: many mutations through validate, the oracle and the GPU, as a record."""

import datetime
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from bvh.fuzz.check import RAYS, STEP_LIMIT, TIME_LIMIT, Tally, run
from bvh.fuzz.gpu_check import RAYS as GPU_RAYS
from bvh.fuzz.gpu_check import GpuTally, run_gpu
from bvh.fuzz.mutations import KINDS
from bvh.fuzz.subjects import Subject, make_subjects
from engine.gpu.device import Device
from treeline.measure import Progress
from treeline.version import commit, version

BATCH = 250  # mutations a task of a worker process
BROKEN_KEPT = 50  # lines of a record


@dataclass(frozen=True, slots=True)
class FuzzRun:
    """Both halves of a run and how long they took, seconds."""

    seed: int
    workers: int
    cpu: Tally
    cpu_seconds: float
    gpu: GpuTally | None
    gpu_seconds: float

    @property
    def broken(self) -> list[str]:
        """Every demand that was not met."""
        return self.cpu.broken + (self.gpu.tally.broken if self.gpu else [])


@cache
def subjects_of(seed: int) -> list[Subject]:
    """The buffers of a seed, built once a process."""
    return make_subjects(seed)


def _batch(seed: int, first: int, count: int) -> Tally:
    return run(subjects_of(seed), seed, first, count)


def _batches(count: int) -> list[tuple[int, int]]:
    return [(first, min(BATCH, count - first)) for first in range(0, count, BATCH)]


@contextmanager
def _mapper(workers: int) -> Iterator[Any]:
    if workers == 1:
        yield map
        return
    # Not forked: a process with a GPU device has threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield pool.map


def fuzz(
    seed: int,
    count: int,
    gpu_count: int,
    device: Device | None,
    workers: int | None,
    progress: Progress,
) -> FuzzRun:
    """`count` mutations on the CPU, the first `gpu_count` of them on `device` as well."""
    workers = max(1, min(workers or os.cpu_count() or 1, len(_batches(count))))
    tally = Tally()
    batches = _batches(count)
    progress.begin(f"{count:,} mutations through validate and the oracle", len(batches))
    started = time.perf_counter()
    with _mapper(workers) as mapped:
        seeds, firsts, counts = [seed] * len(batches), *zip(*batches, strict=True)
        for part in mapped(_batch, seeds, firsts, counts):
            tally.add(part)
            progress.advance(f"{tally.mutations / (time.perf_counter() - started):.0f}/s")
    cpu_seconds = time.perf_counter() - started
    started = time.perf_counter()
    gpu = None
    if device is not None and gpu_count:
        gpu = GpuTally(Tally(), {})
        batches = _batches(gpu_count)
        progress.begin(f"{gpu_count:,} mutations through {device.info.adapter}", len(batches))
        for first, size in batches:
            part = run_gpu(device, subjects_of(seed), seed, first, size)
            gpu.add(part)
            progress.advance()
    return FuzzRun(seed, workers, tally, cpu_seconds, gpu, time.perf_counter() - started)


def record(result: FuzzRun, device: Device | None) -> dict[str, Any]:
    """The run as plain data."""
    subjects = subjects_of(result.seed)
    cpu = result.cpu
    data: dict[str, Any] = {
        "context": {
            "schema": 1,
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "version": version(),
            "commit": commit(),
            "adapter": device.info.adapter if device else "none",
            "driver": device.info.driver if device else "none",
            "seed": result.seed,
            "workers": result.workers,
            "buffers": [
                {
                    "name": subject.name,
                    "box_nodes": subject.node_count,
                    "triangles": sum(s.triangles for s in subject.scene.blas_stats),
                    "instances": len(subject.scene.instances),
                    "bytes": subject.words.nbytes,
                    "rays": len(subject.rays),
                }
                for subject in subjects
            ],
        },
        "cpu": {
            "mutations": cpu.mutations,
            "structural": cpu.structural,
            "named_by_validate": cpu.named,
            "harmless": cpu.mutations - cpu.structural,
            "kinds": {kind: cpu.kinds[kind] for kind in KINDS},
            "sorts": dict(sorted(cpu.sorts.items())),
            "traversals": _traversals(cpu),
            "rays": cpu.rays,
            "rays_per_mutation": RAYS,
            "step_limit": STEP_LIMIT,
            "time_limit_s": TIME_LIMIT,
            "slowest_validate_ms": round(cpu.slowest_validate_ms, 1),
            "slowest_trace_ms": round(cpu.slowest_trace_ms, 1),
            "seconds": round(result.cpu_seconds, 1),
            "mutations_per_s": round(cpu.mutations / max(result.cpu_seconds, 1e-9), 1),
            "broken": len(cpu.broken),
        },
        "broken": result.broken[:BROKEN_KEPT],
        "passed": not result.broken,
    }
    if result.gpu is not None and device is not None:
        gpu = result.gpu
        data["gpu"] = {
            "adapter": device.info.adapter,
            "driver": device.info.driver,
            "backend": device.info.backend,
            "mutations": gpu.tally.mutations,
            "structural": gpu.tally.structural,
            "kinds": {kind: gpu.tally.kinds[kind] for kind in KINDS},
            "traversals": _traversals(gpu.tally),
            "failures": gpu.failures,
            "rays_per_mutation": GPU_RAYS,
            "slowest_dispatch_ms": round(gpu.slowest_ms, 1),
            "seconds": round(result.gpu_seconds, 1),
            "mutations_per_s": round(gpu.tally.mutations / max(result.gpu_seconds, 1e-9), 1),
            "broken": len(gpu.tally.broken),
        }
    return data


def _traversals(tally: Tally) -> dict[str, int]:
    """Per buffer: an error was reported, all rays found brute force's hits, or some another (on
    buffers that validate refuses; elsewhere that would be a broken demand)."""
    return {name: tally.traversals[name] for name in ("error", "equal", "different")}
