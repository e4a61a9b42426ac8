"""Keeps the host from running ahead of the device: waits for the frame before last.

The host sleeps and asks; waiting inside of wgpu would hold up every submit.
"""

import time

from engine.gpu.device import Device
from engine.gpu.submitted_work import SubmittedWork

ASK_AGAIN_S = 0.0002


class FrameFence:
    """At most `in_flight` frames are unfinished after `submitted`; 0 waits for each one.
    `waited_ms` is how long the last one waited."""

    def __init__(self, device: Device, in_flight: int) -> None:
        self.waited_ms = 0.0
        self._in_flight = in_flight
        self._work = SubmittedWork(device)

    def submitted(self) -> None:
        """After the frame's submit; waits if too much is unfinished. AdapterError where the device
        was lost."""
        work = self._work
        work.mark()
        self.waited_ms = 0.0
        if work.unfinished <= self._in_flight:  # the submit itself has looked
            return
        work.poll()
        begun = time.perf_counter()
        while work.unfinished > self._in_flight:
            time.sleep(ASK_AGAIN_S)
            work.poll()
        self.waited_ms = 1e3 * (time.perf_counter() - begun)
