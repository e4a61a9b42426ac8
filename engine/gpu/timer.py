"""GPU times of passes from timestamp queries, in milliseconds.

A pass writes a tick at its begin and at its end. Only queries that were given to a pass are
resolved ("unwritten-query" in engine/gpu/faults.py).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.faults import works_around


class PassTimer:
    """Two timestamps for each of `count` passes; does nothing where timestamps are missing."""

    def __init__(self, device: Device, count: int) -> None:
        self.device = device
        self.count = count
        self.enabled = device.timestamp_period_ns > 0 and count > 0
        if self.enabled:
            self._given: set[int] = set()
            self._queries = device.wgpu.create_query_set(type="timestamp", count=2 * count)
            self._ticks = device.buffer("timestamps", 16 * count, "QUERY_RESOLVE|COPY_SRC|COPY_DST")
            self._aligned = device.buffer("two timestamps", 16, "QUERY_RESOLVE|COPY_SRC")

    def writes(self, index: int) -> dict[str, Any] | None:
        """The `timestamp_writes` of pass `index`."""
        if not self.enabled:
            return None
        self._given.add(index)
        return {
            "query_set": self._queries,
            "beginning_of_pass_write_index": 2 * index,
            "end_of_pass_write_index": 2 * index + 1,
        }

    def resolve(self, encoder: Any) -> None:
        """Encodes the copy of the ticks; those of passes that were never given are 0."""
        if not self.enabled:
            return
        if len(self._given) == self.count or not works_around("unwritten-query"):
            encoder.resolve_query_set(self._queries, 0, 2 * self.count, self._ticks, 0)
            return
        for index in sorted(self._given):  # offsets are multiples of 256: one at a time, then moved
            encoder.resolve_query_set(self._queries, 2 * index, 2, self._aligned, 0)
            encoder.copy_buffer_to_buffer(self._aligned, 0, self._ticks, 16 * index, 16)

    def copies(self) -> list[tuple[Any, int, int]]:
        """(buffer, offset, bytes) of the resolved ticks, for a `ReadbackRing`."""
        return [(self._ticks, 0, 16 * self.count)] if self.enabled else []

    def read_ms(self) -> NDArray[np.float64]:
        """[count, 2] begin and end in ms from the first begin; NaN where there is no timer."""
        if not self.enabled:
            return np.full((self.count, 2), np.nan)
        ticks = self.device.read(self._ticks, np.uint64, count=2 * self.count)
        return spans_ms(ticks, self.device.timestamp_period_ns)


def spans_ms(ticks: NDArray[np.uint64], period_ns: float) -> NDArray[np.float64]:
    """[n, 2] as `PassTimer.read_ms`, from ticks that were read already, each `period_ns` long; NaN
    for those that are 0: of no pass."""
    ticks = ticks.reshape(-1, 2)
    written = ticks > 0
    first = int(ticks[written].min()) if written.any() else 0
    relative = np.where(written, (ticks.astype(np.int64) - first).astype(np.float64), np.nan)
    return relative * period_ns / 1e6
