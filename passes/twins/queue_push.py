"""Twin of queue_push.wgsl, and but for the order of queue_push_subgroup.wgsl: a ray queue and
pushes in lane order."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.structs import Struct
from passes.queue import QUEUE_HEADER


@dataclass(frozen=True, slots=True)
class RayQueue:
    """`header` is one QUEUE_HEADER record (0-dimensional, changed in place); `records`
    [capacity] of the ray type's record."""

    header: NDArray[Any]
    records: NDArray[Any]

    @property
    def count(self) -> int:
        """Rays that a draining pass sees."""
        return min(int(self.header["count"]), int(self.header["capacity"]))

    @property
    def waiting(self) -> int:
        """Of them, those that no pass has drained."""
        return self.count - int(self.header["drained"])

    def push(self, rays: NDArray[Any]) -> None:
        """What the pushes of one pass, taken together, do to the queue."""
        capacity = len(self.records)
        base = int(self.header["count"])
        kept = max(0, min(len(rays), capacity - base))
        self.records[base : base + kept] = rays[:kept]
        self.add("count", len(rays))
        self.header["capacity"] = capacity
        self.add("dropped", len(rays) - kept)

    def add(self, field: str, amount: int) -> None:
        self.header[field] = int(self.header[field]) + amount


def empty_queue(record: Struct, capacity: int) -> RayQueue:
    return RayQueue(np.zeros((), QUEUE_HEADER.dtype), np.zeros(capacity, record.dtype))
