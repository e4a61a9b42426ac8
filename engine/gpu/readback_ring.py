"""Reads buffers back without ever waiting: a ring of staging buffers that are mapped while later
frames run.

A frame encodes its copies into a free staging buffer, submits, and asks some frames later what has
arrived. Where every buffer is still on its way, that frame is not read, and counted in `skipped`.
Sizes and offsets are bytes, multiples of four (WebGPU's `copyBufferToBuffer`).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.gpu.buffer_map import BufferMap, advance
from engine.gpu.device import Device
from engine.gpu.errors import AdapterError


@dataclass(slots=True)
class _Staging:
    """One staging buffer and what it holds: `size` bytes for `tag`."""

    mapping: BufferMap
    tag: Any = None
    size: int = 0


class ReadbackRing:
    """`slots` staging buffers of `size_bytes` each; three hide the latency of a GPU that runs two
    frames behind. What arrives comes in the order in which it was encoded."""

    def __init__(self, device: Device, size_bytes: int, slots: int = 3) -> None:
        self.device = device
        self.size_bytes = max(16, -(-size_bytes // 16) * 16)
        self.skipped = 0
        usage = "MAP_READ|COPY_DST"
        self._free = deque(
            _Staging(BufferMap(device.buffer("readback", self.size_bytes, usage)))
            for _ in range(slots)
        )
        self._encoded: list[_Staging] = []
        self._mapping: deque[_Staging] = deque()

    @property
    def in_flight(self) -> int:
        """How many were encoded and have not been handed out yet."""
        return len(self._encoded) + len(self._mapping)

    @property
    def full(self) -> bool:
        """Whether `encode` would skip."""
        return not self._free

    def encode(self, encoder: Any, copies: Sequence[tuple[Any, int, int]], tag: Any) -> bool:
        """Copies each (buffer, offset, bytes), packed in order; False where no buffer is free.

        The encoder must be submitted before `submitted` is called."""
        total = sum(size for _, _, size in copies)
        if not 0 < total <= self.size_bytes:
            raise ValueError(f"{total} bytes do not fit a ring of {self.size_bytes}")
        if not self._free:
            self.skipped += 1
            return False
        staging = self._free.popleft()
        end = 0
        for buffer, offset, size in copies:
            encoder.copy_buffer_to_buffer(buffer, offset, staging.mapping.buffer, end, size)
            end += size
        staging.tag, staging.size = tag, total
        self._encoded.append(staging)
        return True

    def submitted(self) -> None:
        """Begins to map what was encoded since the last call. AdapterError as in `poll`."""
        for staging in self._encoded:
            try:
                staging.mapping.begin(staging.size)
            except Exception as error:
                raise self._lost(error) from error
            self._mapping.append(staging)
        self._encoded.clear()

    def poll(self) -> list[tuple[Any, bytes]]:
        """(tag, data) of all that has arrived since the last call, oldest first; never waits.
        AdapterError where the device was lost."""
        arrived: list[tuple[Any, bytes]] = []
        if self._mapping:
            try:
                advance(self.device.wgpu)
            except Exception as error:
                raise self._lost(error) from error
        while self._mapping and self._mapping[0].mapping.ended:
            staging = self._mapping.popleft()
            try:
                data = staging.mapping.take()
            except Exception as error:
                raise self._lost(error) from error
            self.device.readback_bytes += staging.size
            arrived.append((staging.tag, data))
            staging.tag = None
            self._free.append(staging)
        return arrived

    def _lost(self, error: Exception) -> AdapterError:
        return AdapterError(f"{self.device.info.adapter}: the device was lost: {error}")
