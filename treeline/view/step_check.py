"""One ray of a frame through the GPU kernel again, its steps written down by the kernel itself and
compared with the oracle's."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bvh.gpu.ray_log import CAPACITY, RayLog, new_log, read_log
from bvh.gpu.trace_rays import HIT
from bvh.ray_steps import Difference, Step, compare_steps
from engine.gpu.device import Device
from engine.gpu.stage import Stage
from passes.queue import QUEUE_HEADER
from treeline.view.pixel_rays import PixelRay, steps

PLAIN_RECORD = "passes/shaders/rays/plain.wgsl"


@dataclass(frozen=True, slots=True)
class StepCheck:
    """`log` is the kernel's own; `differences` are its steps against the oracle's. `result_same`:
    the kernel stored the words that the frame stored (None where no queue held the ray).
    `refused` says why nothing was traced."""

    log: RayLog | None
    differences: tuple[Difference, ...] = ()
    result_same: bool | None = None
    refused: str = ""

    @property
    def verified(self) -> bool:
        return (
            self.log is not None
            and bool(self.log.steps)
            and not self.log.dropped
            and self.result_same is not False
            and not any(d.serious for d in self.differences)
        )

    @property
    def verdict(self) -> str:
        """One line for the user."""
        if self.log is None:
            return self.refused
        if self.log.dropped:
            return f"{self.log.dropped} steps did not fit into the GPU's log"
        serious = [d.message for d in self.differences if d.serious]
        if serious:
            return f"GPU and oracle differ: {serious[0]}"
        if self.result_same is False:
            return "the GPU stored another result than the frame holds"
        if not self.verified:
            return "the GPU did not trace the ray"
        count = f"{len(self.log.steps)} steps"
        extra = sum(d.right < 0 for d in self.differences)
        if extra:
            # Its boxes are a rounding wider; an any-hit ray's pair is tested whole.
            return f"verified: {count} on the GPU, {extra} more than the oracle's"
        return f"verified: the same {count} on the GPU"


def check_steps(device: Device, ray: PixelRay, oracle: list[Step] | None = None) -> StepCheck:
    """Traces the ray alone, from its record and with the frame's kernel, run-time checks left in.
    `oracle`: its `steps`, if they are known. Contract traversal keeps no log: that is refused."""
    if ray.contract:
        return StepCheck(
            None, refused="contract traversal: steps are the oracle's, the GPU has none"
        )
    resources = _resources(device, ray)
    resources["ray_log"] = new_log(device, 0, CAPACITY)
    _stage(device, ray).run(resources, 1)
    log = read_log(device, resources["ray_log"])
    same = None
    if ray.queued is not None:
        size = ray.queued.ray_type.result_bytes
        at = size * ray.slot if ray.queued.ray_type.results_by_slot else 0
        stored = device.read(resources["results"], np.uint32, offset=at, count=size // 4)
        same = bool(np.array_equal(stored, ray.queued.result))
    for name in ("queue", "results", "ray_log", "frame"):
        resources[name].destroy()
    if resources["bvh"] is not ray.traced.scene.buffers["bvh"]:
        resources["bvh"].destroy()
    expected = steps(ray) if oracle is None else oracle
    differences = list(compare_steps(log.steps, expected, ray.ray))
    if log.steps and log.ray != ray.ray:
        differences.insert(0, Difference(-1, -1, f"the kernel read another ray: {log.ray}", True))
    return StepCheck(log, tuple(differences), same)


def _resources(device: Device, ray: PixelRay) -> dict[str, Any]:
    """A queue of one record, a result for it, and what the ray was traced through."""
    traced = ray.traced
    header = np.zeros(1, QUEUE_HEADER.dtype)
    header["count"] = header["capacity"] = 1
    if ray.queued is None:
        record, size = ray.ray.reshape(1).view(np.uint32), HIT.size
    else:
        record, size = ray.queued.record, ray.queued.ray_type.result_bytes
        if ray.queued.ray_type.results_by_slot:
            size *= ray.slot + 1
    return {
        **{name: traced.scene.buffers[name] for name in ("alpha", "texels")},
        "bvh": traced.bvh_buffer(device),
        "frame": device.upload("frame", traced.uniforms.reshape(1), "UNIFORM|COPY_DST"),
        "queue": device.upload("queue", np.concatenate([header.view(np.uint32), record])),
        "results": device.buffer("results", size),
    }


def _stage(device: Device, ray: PixelRay) -> Stage:
    """The kernel of the ray's type, logged."""
    slots, constants = ray.kernel
    record = slots.get("record", PLAIN_RECORD)
    return Stage(
        device,
        f"log/{ray.ray_type}",
        "passes/shaders/traverse_queue_logged.wgsl",
        slots={**slots, "record": record, "count": "bvh/shaders/count_steps.wgsl"},
        constants={**constants, "CHECK_POINTERS": True},
    )
