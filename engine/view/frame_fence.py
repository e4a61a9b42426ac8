"""Keeps the host from running ahead of the device: waits for the frame before last.

wgpu's `on_submitted_work_done` cannot be used (its callback has the wrong C type in wgpu 0.32), so
a frame's end is known by mapping a small buffer that the frame writes.
"""

from collections import deque
from typing import Any


class FrameFence:
    """At most `in_flight` frames are unfinished after `submitted`; 0 waits for each one."""

    def __init__(self, device: Any, in_flight: int) -> None:
        self._source = device.create_buffer(label="fence source", size=4, usage="COPY_SRC")
        self._free = [
            device.create_buffer(label="fence", size=4, usage="COPY_DST|MAP_READ")
            for _ in range(in_flight + 1)
        ]
        self._encoded: Any = None
        self._pending: deque[tuple[Any, Any]] = deque()  # (buffer, promise of its mapping)
        self._in_flight = in_flight

    def encode(self, encoder: Any) -> None:
        """Last in the frame's commands."""
        self._encoded = self._free.pop()
        encoder.copy_buffer_to_buffer(self._source, 0, self._encoded, 0, 4)

    def submitted(self) -> None:
        """After the frame's submit; waits if too much is unfinished."""
        self._pending.append((self._encoded, self._encoded.map_async("READ")))
        while len(self._pending) > self._in_flight:
            buffer, promise = self._pending.popleft()
            promise.sync_wait()
            buffer.unmap()
            self._free.append(buffer)
