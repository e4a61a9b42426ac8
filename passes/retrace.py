"""Given rays through a frame's own structure and kernels: what other frames' rays hit there."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.trace_rays import FAILURES
from engine.frame.frame import Frame
from engine.gpu.errors import UserError
from passes.hybrid import HybridFrame
from passes.queue import QUEUE_HEADER

TRACING = ("arguments", "traverse")  # passes that drain a queue, by the first part of their names


def retrace(frame: HybridFrame, rays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Ray type -> what each of its records in `rays` finds: as of `FrameData.read_results`, in the
    scene's pose of the frame that was drawn last. That frame's own rays are lost, and its next one
    is as if nothing had been. UserError where a traversal fails.

    For frames whose types are traced by themselves, whole and in the order of their queues, as by
    default (`FrameOptions.passes`, `any_hit_mode`, `ray_sort`)."""
    data = frame.data
    data.hold_pose(frame.inputs)
    for ray in data.rays:
        records = rays[ray.name]
        capacity = data.capacities[ray.name]
        if len(records) > capacity:
            raise ValueError(f"{len(records)} {ray.name} rays, the queue holds {capacity}")
        header = np.zeros(1, QUEUE_HEADER.dtype)
        header["count"], header["capacity"] = len(records), capacity
        data.device.write(data.resources[ray.queue], header)
        data.device.write(data.resources[ray.queue], records, QUEUE_HEADER.size)
    passes = [item for item in frame.passes if item.name.split("/")[0] in TRACING]
    Frame(data.device, passes, data.resources, given=tuple(data.resources)).run()
    found = {}
    for ray in data.rays:
        failed = data.read_header(ray)["failed"]
        if failed:
            reasons = [text for bit, text in FAILURES.items() if failed & bit]
            raise UserError(f"{ray.name} rays: {', '.join(reasons)}")
        found[ray.name] = data.read_results(ray, rays[ray.name])
    return found
