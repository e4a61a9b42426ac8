"""Measures cases as whole frames of one scene, in turns, and checks that they hit the same.

A case's time is that of its frame's traversal passes: the very passes, rays and records that a
tuned frame has. Timestamps on GPUs, the wall clock on CPU adapters.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.blas import BuildOptions
from bvh.rays import MISS_ID
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import PreparedScene
from passes.rays import RayType, frame_rays
from treeline.cost_model import traversal_ms
from treeline.tune.blocks import Block, Measured
from treeline.tune.cases import Case

T_TOLERANCE = 1e-4  # relative, as of `treeline bench trace`
# Rays that may hit something else over another structure, whose vertices may be rounded anew; over
# the same one none may.
ALLOWED_DIFFERENCE = 1e-3

Found = Mapping[str, tuple[NDArray[Any], NDArray[Any]]]  # ray type -> its rays' slots, results


@dataclass(slots=True)
class FrameMeasurer:
    """`options` are the frame's but for kernels; `pose` fields of its inputs. `build` makes the
    structure of a scene; UserError where it cannot be had. Structures are kept for a block."""

    device: Device
    options: FrameOptions
    pose: Mapping[str, Any]
    build: Callable[[BuildOptions], PreparedScene]
    warmup_ms: float
    _scenes: dict[BuildOptions, GpuScene] = field(default_factory=dict)

    @property
    def rays(self) -> tuple[RayType, ...]:
        return frame_rays(self.options)

    @property
    def chosen(self) -> tuple[RayType, ...]:
        """Of these the types that a kernel is chosen for, which all bounces share."""
        return tuple(ray for ray in self.rays if not ray.bounce_of)

    def measure(self, phase: str, cases: Sequence[Case], turns: int) -> Block:
        """As treeline.tune.blocks.Measure: the first case is what hits are compared with. Its
        frames end here, and with them their pipelines' use."""
        start = time.perf_counter()
        builds = {case.build for case in cases}
        self._scenes = {b: scene for b, scene in self._scenes.items() if b in builds}
        frames: dict[int, HybridFrame] = {}
        refused: dict[int, str] = {}
        different: dict[int, dict[str, int]] = {}
        expected: Found | None = None
        for number, case in enumerate(cases):
            try:
                frame = self.frame(case)
                found = self.first_run(frame, case)
            except UserError as error:
                if expected is None:
                    raise  # without the default there is nothing to compare with
                refused[number], different[number] = str(error), {}
                continue
            if expected is None:
                expected = found
            same_build = case.build == cases[0].build
            different[number] = self.differences(found, expected)
            reason = self.too_different(found, different[number], same_build)
            if reason:
                refused[number] = reason
            else:
                frames[number] = frame
        ms = self.turns(list(frames.values()), turns)
        times = dict(zip(frames, ms, strict=True))
        results = [
            Measured(case, times.get(i, {}), different[i], refused.get(i))
            for i, case in enumerate(cases)
        ]
        return Block(tuple(results), time.perf_counter() - start)

    def frame(self, case: Case) -> HybridFrame:
        if case.build not in self._scenes:
            self._scenes[case.build] = GpuScene(self.device, self.build(case.build))
        scene = self._scenes[case.build]
        options = replace(self.options, kernels=case.kernels)
        frame = HybridFrame(self.device, scene.prepared, options, scene)
        frame.inputs = replace(frame.inputs, **self.pose)
        frame.remember()
        return frame

    def first_run(self, frame: HybridFrame, case: Case) -> Found:
        """What the rays hit; UserError where the frame is not valid, or needs another stack."""
        stats = frame.run(0)
        if stats.dropped:
            stats = frame.run(0)  # the queues have grown to what the first frame needed
        if frame.options.kernels != case.kernels:
            raise UserError("a stack overflowed (of these rays or of those beside them)")
        if not stats.valid:
            reasons = ", ".join(stats.failures) or "rays were dropped"
            raise UserError(f"the frame is not valid: {reasons}")
        return results_of(frame)

    def differences(self, found: Found, expected: Found) -> dict[str, int]:
        return {
            ray.name: count_different(ray, found[ray.name], expected[ray.name]) for ray in self.rays
        }

    def too_different(
        self, found: Found, different: Mapping[str, int], same_build: bool
    ) -> str | None:
        for name, count in different.items():
            rays = len(found[name][0])
            if count > (0 if same_build else ALLOWED_DIFFERENCE * rays):
                return f"{count:,} of {rays:,} {name} rays hit something else"
        return None

    def turns(self, frames: Sequence[HybridFrame], turns: int) -> list[dict[str, list[float]]]:
        """[frames] ms of each turn by the types of `chosen`, after the warm-up; every other turn
        goes through the frames the other way."""
        found: list[dict[str, list[float]]] = [
            {ray.name: [] for ray in self.chosen} for _ in frames
        ]
        start = time.perf_counter()
        while 1e3 * (time.perf_counter() - start) < self.warmup_ms:
            for frame in frames:
                frame.run(0)
        order = list(zip(frames, found, strict=True))
        for _ in range(turns):
            for frame, ms in order:
                passes = frame.run(0).passes
                for name, values in ms.items():
                    traced = [ray.name for ray in self.rays if ray.family == name]
                    values.append(sum(traversal_ms(passes, ray_type) for ray_type in traced))
            order.reverse()
        return found


def results_of(frame: HybridFrame) -> Found:
    """Each ray type's slots, in any order, and what the rays of these found."""
    found = {}
    for ray in frame.data.rays:
        records = frame.data.read_records(ray)
        found[ray.name] = records[ray.slot_field], frame.data.read_results(ray, records)
    return found


def count_different(
    ray: RayType,
    found: tuple[NDArray[Any], NDArray[Any]],
    expected: tuple[NDArray[Any], NDArray[Any]],
) -> int:
    """Rays that are in one frame only, or hit something else: neither the same primitive nor at an
    equal distance (closest hit), or hit where the other misses."""
    (slots, results), (expected_slots, expected_results) = found, expected
    most = max(slots.max(initial=0), expected_slots.max(initial=0))
    place = np.full(int(most) + 1, -1, np.int64)
    place[expected_slots] = np.arange(len(expected_slots))
    other = place[slots]
    both = other >= 0
    alone = len(slots) + len(expected_slots) - 2 * int(both.sum())
    a, b = results[both], expected_results[other[both]]
    if ray.any_hit:
        return alone + int((a != b).sum())
    hit, there = a["object"] != MISS_ID, b["object"] != MISS_ID
    same = (a["object"] == b["object"]) & (a["primitive"] == b["primitive"])
    apart = np.abs(a["t"].astype(np.float64) - b["t"])
    same |= apart <= T_TOLERANCE * np.abs(b["t"].astype(np.float64))
    return alone + int(((hit != there) | (hit & there & ~same)).sum())
