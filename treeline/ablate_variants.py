"""The frames that an ablation compares, each as a setup says (treeline/ablate_switches.py)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from engine.gpu.device import Device
from engine.gpu.errors import CheckFailed
from engine.scene.pose import moves
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import PreparedScene
from treeline.ablate_switches import Setup
from treeline.ablate_terms import Totals, totals
from treeline.counted_rays import CountedRays, read_counted
from treeline.whole_frame import draw_whole

# (scene, build options, group) -> the structure
Prepare = Callable[[Setup], PreparedScene]


@dataclass(frozen=True, slots=True)
class Variant:
    """A frame that is drawn again and again, and the sums of a counted one like it."""

    frame: HybridFrame
    counts: Totals
    seconds: float  # that a frame takes, with what the host does

    def run(self) -> FrameStats:
        stats = self.frame.run(0)
        if not stats.valid:
            raise CheckFailed(f"a timed frame failed: {'; '.join(stats.failures) or 'no room'}")
        return stats

    def redraw(self) -> FrameStats:
        """`run` without what an earlier frame left (`FrameStats.reused`)."""
        self.frame.forget()
        return self.run()


class Variants:
    """Makes variants on a device. Frames share what is on the GPU where scene, build and way of
    updating are equal; `pose` is the clip and time of frames whose scene moves."""

    def __init__(
        self, device: Device, prepare: Prepare, size: tuple[int, int], pose: dict[str, Any]
    ) -> None:
        self.device, self.size, self.pose = device, size, pose
        self._prepare = prepare
        self._scenes: dict[Any, GpuScene] = {}
        self._base: HybridFrame | None = None

    def make(self, setup: Setup) -> tuple[Variant, CountedRays]:
        """CheckFailed where the counted frame hits something else. It is drawn once more, to know
        how long that takes."""
        frame = self._draw(setup, count=False)
        start = time.perf_counter()
        frame.run(0)
        seconds = time.perf_counter() - start
        counting = self._draw(setup, count=True)
        if counting.result_hash() != frame.result_hash():
            raise CheckFailed("a counted frame hit something else: its counts explain no time")
        counted = _read(counting)
        return Variant(frame, totals(counted), seconds), counted

    def count(self, setup: Setup) -> CountedRays:
        """Without a frame to time."""
        return _read(self._draw(setup, count=True))

    def _draw(self, setup: Setup, *, count: bool) -> HybridFrame:
        scene = self._scene(setup)
        width, height = self.size
        options = replace(setup.settings.frame, width=width, height=height, count=count)
        frame = HybridFrame(self.device, scene.prepared, options, scene)
        self._base = self._base or frame
        # The base's view and default radius: a scene that lacks something has other bounds.
        base = self._base.inputs
        given = replace(
            frame.inputs,
            camera=base.camera,
            light=base.light,
            more_lights=base.more_lights,
            environment=base.environment,
            bounds=base.bounds,
            occlusion_radius=options.occlusion_radius or base.occlusion_radius,
        )
        pose = self.pose if scene.moving else {"clip": None}
        frame.inputs = replace(setup.inputs(given), **pose)
        if not count:
            frame.remember()
        draw_whole(frame)
        return frame

    def _scene(self, setup: Setup) -> GpuScene:
        names = tuple(instance.name for instance in setup.scene.instances)
        update = setup.settings.frame.update if moves(setup.scene) else None
        key = (names, setup.settings.build, setup.settings.group, update)
        if key not in self._scenes:
            self._scenes[key] = GpuScene(self.device, self._prepare(setup))
        return self._scenes[key]


def _read(frame: HybridFrame) -> CountedRays:
    return read_counted(frame.data, frame.scene.prepared.bvh.words.nbytes)
