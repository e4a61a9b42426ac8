"""GPU times of passes from timestamp queries, in milliseconds.

A pass writes a tick at its begin and at its end. Every query of a set must be written before it
is resolved: resolving an unwritten one loses the device on some drivers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device


class PassTimer:
    """Two timestamps for each of `count` passes; does nothing where timestamps are missing."""

    def __init__(self, device: Device, count: int) -> None:
        self.device = device
        self.count = count
        self.enabled = device.timestamp_period_ns > 0 and count > 0
        if self.enabled:
            self._queries = device.wgpu.create_query_set(type="timestamp", count=2 * count)
            self._ticks = device.buffer("timestamps", 16 * count, "QUERY_RESOLVE|COPY_SRC")

    def writes(self, index: int) -> dict[str, Any] | None:
        """The `timestamp_writes` of pass `index`."""
        if not self.enabled:
            return None
        return {
            "query_set": self._queries,
            "beginning_of_pass_write_index": 2 * index,
            "end_of_pass_write_index": 2 * index + 1,
        }

    def resolve(self, encoder: Any) -> None:
        if self.enabled:
            encoder.resolve_query_set(self._queries, 0, 2 * self.count, self._ticks, 0)

    def copies(self) -> list[tuple[Any, int, int]]:
        """(buffer, offset, bytes) of the resolved ticks, for a `ReadbackRing`."""
        return [(self._ticks, 0, 16 * self.count)] if self.enabled else []

    def read_ms(self) -> NDArray[np.float64]:
        """[count, 2] begin and end in ms from the first begin; NaN where there is no timer."""
        if not self.enabled:
            return np.full((self.count, 2), np.nan)
        return self.spans_ms(self.device.read(self._ticks, np.uint64, count=2 * self.count))

    def spans_ms(self, ticks: NDArray[np.uint64]) -> NDArray[np.float64]:
        """As `read_ms`, from ticks that were read already."""
        ticks = ticks.reshape(-1, 2)
        relative = (ticks.astype(np.int64) - int(ticks.min())).astype(np.float64)
        return relative * self.device.timestamp_period_ns / 1e6
