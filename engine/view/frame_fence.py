"""Keeps the host from running ahead of the device: waits for the frame before last.

A frame's end is known by a word that it copies for the host (wgpu 0.32's `on_submitted_work_done`
has a callback of the wrong C type). The host sleeps and asks; waiting inside of wgpu would hold up
every submit.
"""

import time
from typing import Any

from engine.gpu.device import Device
from engine.gpu.readback_ring import ReadbackRing

ASK_AGAIN_S = 0.0002
_WORD = 4


class FrameFence:
    """At most `in_flight` frames are unfinished after `submitted`; 0 waits for each one.
    `waited_ms` is how long the last one waited."""

    def __init__(self, device: Device, in_flight: int) -> None:
        self.waited_ms = 0.0
        self._in_flight = in_flight
        self._ring = ReadbackRing(device, _WORD, in_flight + 1)
        self._source = device.buffer("fence", _WORD, "COPY_SRC")

    def encode(self, encoder: Any) -> None:
        """Last in the frame's commands."""
        self._ring.encode(encoder, [(self._source, 0, _WORD)], None)

    def submitted(self) -> None:
        """After the frame's submit; waits if too much is unfinished. AdapterError where the device
        was lost."""
        self._ring.submitted()
        self._ring.poll()
        begun = time.perf_counter()
        while self._ring.in_flight > self._in_flight:
            time.sleep(ASK_AGAIN_S)
            self._ring.poll()
        self.waited_ms = 1e3 * (time.perf_counter() - begun)
