"""What the GPU kernel makes of damaged buffers: checked modules, the damage written into the buffer
on the device and taken back.

Demanded of each mutation: the dispatch ends (by the kernel's caps if need be) and the device is
still there; and where `validate` names nothing, no failure bit is set and every ray finds what
brute force finds over the decoded triangles.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.fuzz.check import Tally, expected_t, judge, mutation_of, rays_for
from bvh.fuzz.damage import WORDS, Mutation
from bvh.fuzz.mutations import apply, undo
from bvh.fuzz.subjects import Subject
from bvh.gpu.default_kernel import GPU, default_kernel
from bvh.gpu.trace_rays import FAILURES, RayTracer, Variant, scene_has_fans, scene_has_spheres
from bvh.rays import MISS_ID
from bvh.validate import validate
from engine.gpu.device import Device

RAYS = 64  # a mutation, those that read the damaged record first; a workgroup


@dataclass(slots=True)
class GpuTally:
    """Counts of a GPU run; `failures` by failure bit, `slowest_ms` the longest dispatch with its
    read-back."""

    tally: Tally
    failures: dict[str, int]
    slowest_ms: float = 0.0

    def add(self, other: "GpuTally") -> None:
        """Takes another run's counts in."""
        self.tally.add(other.tally)
        for text, count in other.failures.items():
            self.failures[text] = self.failures.get(text, 0) + count
        self.slowest_ms = max(self.slowest_ms, other.slowest_ms)


class GpuSubject:
    """A subject's buffer on a device, and its kernels: a GPU's, and where this adapter has another
    one by default that, too."""

    def __init__(self, device: Device, subject: Subject) -> None:
        self.device = device
        self.subject = subject
        self.buffer = device.upload("bvh", subject.words)
        # Untrusted: indices are checked by the kernel, loops are bounded by the driver's rules.
        fans, spheres = scene_has_fans(subject.scene), scene_has_spheres(subject.scene)
        variant = Variant("fuzz", has_alpha=False, has_fans=fans, has_spheres=spheres)
        self.tracers = [
            RayTracer(device, subject.words, replace(variant, loops=loops), bvh_buffer=self.buffer)
            for loops in dict.fromkeys((GPU.loops, default_kernel(device.info).loops))
        ]

    def trace(
        self,
        mutation: Mutation,
        before: list[tuple[int, int, int]],
        chosen: NDArray[np.int64],
        number: int = 0,
    ) -> Any:
        """The damaged buffer's GpuTrace; the device's buffer is whole again afterwards.
        Kernels take turns by `number`."""
        self._write(mutation.edits)
        try:
            tracer = self.tracers[number % len(self.tracers)]
            return tracer.trace(self.subject.rays[chosen])
        finally:
            self._write(tuple(reversed(before)))

    def _write(self, edits: tuple[tuple[int, int, int], ...]) -> None:
        for buffer, index, value in edits:
            if buffer == WORDS:
                self.device.write(self.buffer, np.array([value], np.uint32), 4 * index)


def run_gpu(device: Device, subjects: list[Subject], seed: int, first: int, count: int) -> GpuTally:
    """Mutations `first` to `first + count` through the GPU kernel."""
    result = GpuTally(Tally(), dict.fromkeys(FAILURES.values(), 0))
    held = {id(subject): GpuSubject(device, subject) for subject in subjects}
    tally = result.tally
    for index in range(first, first + count):
        subject, mutation = mutation_of(subjects, seed, index)
        gpu = held[id(subject)]
        before = apply(subject, mutation)
        try:
            chosen = rays_for(subject, mutation, RAYS)
            refused = bool(validate(subject.scene))
            expected, sure = expected_t(subject, mutation, chosen)
            started = time.perf_counter()
            trace = gpu.trace(mutation, before, chosen, index)
            spent = 1e3 * (time.perf_counter() - started)
            result.slowest_ms = max(result.slowest_ms, spent)
            hit = trace.hits["object"] != MISS_ID
            t = np.where(hit, trace.hits["t"], np.float32(np.inf))
            failed = np.full(len(t), bool(trace.failures))
            broken = judge(subject, tally, refused, t, failed, expected, sure)
        finally:
            undo(subject, before)
        tally.mutations += 1
        tally.structural += mutation.structural
        tally.kinds[mutation.kind] += 1
        tally.rays += len(chosen)
        for text in trace.failures:
            result.failures[text] += 1
        tally.broken += [f"mutation {index} of '{subject.name}', {mutation}: {x}" for x in broken]
    return result
