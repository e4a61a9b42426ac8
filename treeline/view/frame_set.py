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
    """Frames of one scene, one set of options and one size. The timed one is made at once, so that
    a size that the adapter has no room for is refused here; the others when they are first asked
    for: nothing counted exists before that."""

    def __init__(self, device: Device, scene: GpuScene, options: FrameOptions) -> None:
        self.device = device
        self.scene = scene
        self.options = built_into_frames(options)
        self.small_size = small_size(options.width, options.height)
        self._frames: dict[str, HybridFrame] = {}
        self.timed = self._get("timed", self.options)

    def fits(self, scene: GpuScene, options: FrameOptions) -> bool:
        """Whether frames of that scene with those options would be these."""
        return scene is self.scene and built_into_frames(options) == self.options

    @property
    def counted(self) -> HybridFrame:
        return self._get("counted", replace(self.options, count=True))

    @property
    def small(self) -> HybridFrame:
        width, height = self.small_size
        return self._get("small", replace(self.options, width=width, height=height))

    @property
    def has_small(self) -> bool:
        """Whether the small frame is smaller than the others."""
        return self.small_size != (self.options.width, self.options.height)

    @property
    def has_counted(self) -> bool:
        return "counted" in self._frames

    def drop_counted(self) -> None:
        self._frames.pop("counted", None)

    def _get(self, name: str, options: FrameOptions) -> HybridFrame:
        if name not in self._frames:
            scene = self.scene
            self._frames[name] = HybridFrame(self.device, scene.prepared, options, scene)
        return self._frames[name]
