"""The frames that the viewer draws with: one timed, one counted, and a small one for motion."""

import math
from dataclasses import replace

from engine.gpu.device import Device
from passes.frame_options import FrameOptions
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame

SMALL_PIXELS = 240 * 135  # while the camera moves on a CPU driver


def small_size(width: int, height: int) -> tuple[int, int]:
    """A size of about SMALL_PIXELS in the same proportions, never larger than the given one."""
    scale = min(1.0, math.sqrt(SMALL_PIXELS / (width * height)))
    return max(1, round(width * scale)), max(1, round(height * scale))


def built_into_frames(options: FrameOptions) -> FrameOptions:
    """The options without those that a frame takes as inputs, and without `count`, which says how
    many frames there are: where these are equal, frames are."""
    return replace(options, count=False, seed=0, roughness_cutoff=0.0, exposure=1.0)


class FrameSet:
    """Frames of one scene, one set of options and one size. Nothing counted exists unless `make`
    is asked for it. Raises where the adapter has no room for the size."""

    def __init__(self, device: Device, scene: GpuScene, options: FrameOptions) -> None:
        self.device = device
        self.scene = scene
        self.options = built_into_frames(options)
        self.counted: HybridFrame | None = None
        self.timed = self._frame(self.options)
        width, height = small_size(options.width, options.height)
        self.has_small = (width, height) != (options.width, options.height)
        self.small = self.timed
        if self.has_small:
            # A CPU driver rasterises every triangle at any size; rays follow the pixels.
            small = replace(self.options, width=width, height=height, gbuffer="rays")
            self.small = self._frame(small)

    def make_counted(self) -> None:
        if self.counted is None:
            self.counted = self._frame(replace(self.options, count=True))

    def drop_counted(self) -> None:
        self.counted = None

    def fits(self, scene: GpuScene | None, options: FrameOptions) -> bool:
        """Whether frames of that scene with those options would be these."""
        return scene is self.scene and built_into_frames(options) == self.options

    def _frame(self, options: FrameOptions) -> HybridFrame:
        return HybridFrame(self.device, self.scene.prepared, options, self.scene)
