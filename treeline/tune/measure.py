"""Measures cases as whole frames of one scene, in turns, and checks that they hit the same.

A case's time is that of its frame's traversal passes: the very passes, rays and records that a
tuned frame has. Timestamps on GPUs, the wall clock on CPU adapters.

Frames over one structure send the same rays, and are compared as they are. Over another one the
G-buffer's normals are rounded anew, and reflections start off in other directions: there the
default's rays are traced again, which are then the same to the bit.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from engine.gpu.device import Device
from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import PreparedScene
from passes.rays import RayType, frame_rays
from passes.retrace import retrace
from treeline.cost_model import traversal_ms
from treeline.tune.agreement import Agreement, Found, agree
from treeline.tune.blocks import Block, Measured
from treeline.tune.cases import Case, Recipe

# Share of a type's rays, or one ray, that a frame over another structure may send more or fewer
# than the default, as edges of the picture are rounded: else its time is that of other work.
MORE_OR_FEWER = 1e-3

Frames = Mapping[str, Found]  # what a frame's rays found, by their types


@dataclass(slots=True)
class FrameMeasurer:
    """`options` are the frame's but for kernels; `pose` fields of its inputs. `build` makes the
    structure of a recipe; UserError where it cannot be had. Structures are kept for a block."""

    device: Device
    options: FrameOptions
    pose: Mapping[str, Any]
    build: Callable[[Recipe], PreparedScene]
    warmup_ms: float
    _scenes: dict[Recipe, GpuScene] = field(default_factory=dict)

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
        recipes = {case.recipe for case in cases}
        self._scenes = {r: scene for r, scene in self._scenes.items() if r in recipes}
        frames: dict[int, HybridFrame] = {}
        refused: dict[int, str] = {}
        hits: dict[int, dict[str, Agreement]] = {}
        expected: Frames | None = None
        for number, case in enumerate(cases):
            hits[number] = {}
            try:
                frame = self.frame(case)
                own = self.first_run(frame, case)
                expected = expected or own
                same = case.recipe == cases[0].recipe
                found = own if same else self.traced_again(frame, expected)
            except UserError as error:
                if expected is None:
                    raise  # without the default there is nothing to compare with
                refused[number] = str(error)
                continue
            size = frame.scene.prepared.diagonal
            hits[number] = {
                ray.name: agree(ray, found[ray.name], expected[ray.name], size) for ray in self.rays
            }
            reasons = [h.refusal(n, same_structure=same) for n, h in hits[number].items()]
            reason = next(filter(None, [*reasons, sends_others(own, expected)]), None)
            if reason:
                refused[number] = reason
            else:
                frames[number] = frame
        ms = self.turns(list(frames.values()), turns)
        times = dict(zip(frames, ms, strict=True))
        results = [
            Measured(case, times.get(i, {}), hits[i], refused.get(i), self.costs(case.recipe))
            for i, case in enumerate(cases)
        ]
        return Block(tuple(results), time.perf_counter() - start)

    def frame(self, case: Case) -> HybridFrame:
        if case.recipe not in self._scenes:
            self._scenes[case.recipe] = GpuScene(self.device, self.build(case.recipe))
        scene = self._scenes[case.recipe]
        options = replace(self.options, kernels=case.kernels)
        frame = HybridFrame(self.device, scene.prepared, options, scene)
        frame.inputs = replace(frame.inputs, **self.pose)
        frame.remember()
        return frame

    def costs(self, recipe: Recipe) -> dict[str, float]:
        """By treeline.tune.blocks.COSTS; nothing of a structure that could not be had."""
        if recipe not in self._scenes:
            return {}
        scene = self._scenes[recipe]
        return {
            "bvh_bytes": scene.prepared.bvh.words.nbytes,
            "geometry_bytes": scene.arrays["geometry"].nbytes,
            "build_ms": sum(stats.build_ms for stats in scene.prepared.bvh.blas_stats),
        }

    def first_run(self, frame: HybridFrame, case: Case) -> Frames:
        """What the rays hit; UserError where the frame is not valid, or needs another stack."""
        stats = frame.run(0)
        if stats.dropped:
            stats = frame.run(0)  # the queues have grown to what the first frame needed
        if frame.options.kernels != case.kernels:
            raise UserError("a stack overflowed (of these rays or of those beside them)")
        if not stats.valid:
            reasons = ", ".join(stats.failures) or "rays were dropped"
            raise UserError(f"the frame is not valid: {reasons}")
        return {
            ray.name: self._found(frame, records, frame.data.read_results(ray, records))
            for ray in frame.data.rays
            for records in [frame.data.read_records(ray)]
        }

    def traced_again(self, frame: HybridFrame, expected: Frames) -> Frames:
        """What the rays of `expected` hit in another frame; its own are lost."""
        records = {name: found.records for name, found in expected.items()}
        results = retrace(frame, records)
        return {name: self._found(frame, records[name], results[name]) for name in records}

    def _found(self, frame: HybridFrame, records: Any, results: Any) -> Found:
        originals = np.array(frame.scene.prepared.originals, np.int64)
        return Found(records, results, originals)

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


def sends_others(own: Frames, expected: Frames) -> str | None:
    """Why the time of a frame that sends its `own` rays is none to compare with."""
    for name, found in expected.items():
        count, there = len(own[name].records), len(found.records)
        if abs(count - there) > max(1, MORE_OR_FEWER * there):
            return f"it sends {count:,} {name} rays, the default {there:,}"
    return None
