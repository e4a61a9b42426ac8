"""The planes that a count is shown from: a ray type's own, or of several types
(passes.rays.ray_sum) their sums, which a stage makes before anybody reads them."""

from typing import Any

from engine.gpu.compute_scope import ComputePasses
from engine.gpu.device import Device
from engine.gpu.stage import Dispatch, Stage
from passes.hybrid import HybridFrame
from passes.outputs import Output, counted_rays
from passes.rays.ray_sum import RaySum
from passes.slot_counts import buffer_bytes


class CountPlanes:
    """For pictures of one size. Sums lie in one buffer, as the planes of a type with one slot a
    pixel, made when a sum is first asked for: the sum that was made last."""

    def __init__(self, device: Device, width: int, height: int) -> None:
        self._device = device
        self._pixels = width * height
        self._tiles = (-(-width // 8), -(-height // 8))
        self._summed: Any = None
        self._stages: dict[tuple[bool, int], Stage] = {}
        self._passes = ComputePasses()

    def forget(self) -> None:
        """Lets go of a frame's buffers."""
        self._stages.clear()

    def planes(self, frame: HybridFrame, output: Output) -> Any:
        """[count][slot], of a count."""
        rays = counted_rays(frame.data.rays, output)
        if not isinstance(rays, RaySum):
            return frame.data.resources[rays.slot_counts]
        if self._summed is None:
            size = buffer_bytes(self._pixels)
            self._device.check_binding("the counts of all rays", size)
            self._summed = self._device.buffer("summed_counts", size)
        return self._summed

    def dispatches(self, frame: HybridFrame, output: Output) -> list[Dispatch]:
        """What makes the planes of the frame's newest picture; nothing where its rays have."""
        rays = None if output.count is None else counted_rays(frame.data.rays, output)
        found: list[Dispatch] = []
        for ray in rays.rays if isinstance(rays, RaySum) else ():
            resources = {
                "frame": frame.data.resources["frame"],
                "slot_counts": frame.data.resources[ray.slot_counts],
                "summed": self.planes(frame, output),
            }
            stage = self._stage(not found, ray.slots_per_pixel)
            found.append(stage.prepare(resources, self._tiles))
        return found

    def encode(self, encoder: Any, frame: HybridFrame, output: Output) -> None:
        """`dispatches` in a pass of their own."""
        scope = self._passes.begin(encoder, "counts")
        for dispatch in self.dispatches(frame, output):
            dispatch.encode(scope)
        scope.end()

    def _stage(self, first: bool, slots_per_pixel: int) -> Stage:
        key = (first, slots_per_pixel)
        if key not in self._stages:
            constants = {"FIRST": first, "SLOTS_PER_PIXEL": slots_per_pixel}
            path = "passes/shaders/sum_counts.wgsl"
            self._stages[key] = Stage(self._device, "sum_counts", path, constants=constants)
        return self._stages[key]
