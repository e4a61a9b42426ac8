"""Draws the runs of a fit. Runs of one size and the same masks share a frame, whose inputs are
set anew for each: kernels and buffers are made a few times, not once a run."""

from dataclasses import dataclass, field, replace
from typing import Any

from engine.gpu.device import Device
from engine.scene.camera import Camera
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from treeline.cost_terms import Counted
from treeline.fit_views import FitRun
from treeline.whole_frame import draw_whole


@dataclass(slots=True)
class FitBench:
    """`size` of the largest runs; `views` what runs may look at. Counted frames go before timed
    ones are made."""

    device: Device
    scene: GpuScene
    options: FrameOptions
    size: tuple[int, int]
    views: dict[str, Camera]
    _frames: dict[FrameOptions, HybridFrame] = field(default_factory=dict)
    _inputs: dict[FrameOptions, Any] = field(default_factory=dict)

    def count(self, run: FitRun) -> Counted:
        options = self._options(run, count=True)
        stats = self._draw(run, options)
        frame = self._frames[options]
        return Counted(stats.rays, options.width * options.height, frame.result_hash())

    def time(self, run: FitRun) -> FrameStats:
        return self._draw(run, self._options(run, count=False))

    def result_hash(self, run: FitRun) -> str:
        """Of the run that was timed last."""
        return self._frames[self._options(run, count=False)].result_hash()

    def _options(self, run: FitRun, *, count: bool) -> FrameOptions:
        width, height = (max(1, round(side * run.scale)) for side in self.size)
        masks = run.masks or self.options.masks
        return replace(
            self.options, width=width, height=height, count=count, count_lanes=count, masks=masks
        )

    def _draw(self, run: FitRun, options: FrameOptions) -> FrameStats:
        if options not in self._frames:
            kept = {o: f for o, f in self._frames.items() if o.count == options.count}
            self._frames = {
                **kept,
                options: HybridFrame(self.device, self.scene.prepared, options, self.scene),
            }
            self._inputs[options] = self._frames[options].inputs
        frame = self._frames[options]
        frame.inputs = run.inputs(self._inputs[options], self.views)
        return draw_whole(frame, name=f"{run}: a frame")
