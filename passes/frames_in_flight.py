"""Frames whose statistics are still on their way: a ring of three, so that nobody waits.

A frame is submitted with copies of its statistics and of its timestamps behind it. Some frames
later they have arrived, and say the same as if the frame had been waited for.
"""

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from engine.frame.frame import Frame, times_of
from engine.gpu.readback_ring import ReadbackRing
from passes.frame_data import FrameData
from passes.frame_stats import FrameStats
from passes.frame_uniforms import FrameInputs
from passes.read_back import ReadFacts, Traffic, collect_stats
from passes.statistics_buffers import StatisticsBuffers, StatisticsLayout


@dataclass(slots=True)
class _Sent:
    """What the host knows of a frame when it submits it."""

    traffic: Traffic
    inputs: FrameInputs
    history_lost: str
    encode_ms: float = 0.0


class FramesInFlight:
    """Of one `Frame`; where that is made anew, so is this, and what was on its way is lost.
    `host_ms` is the host's time for reading back so far: copies, mapping, statistics."""

    def __init__(self, data: FrameData, frame: Frame) -> None:
        self.data = data
        self.frame = frame
        self.statistics = StatisticsBuffers(data)
        self.facts = ReadFacts.of(data)
        self.host_ms = 0.0
        self._ring: ReadbackRing | None = None  # for those who never submit there is none

    @property
    def full(self) -> bool:
        return self._ring is not None and self._ring.full

    def submit(self, before: Traffic, inputs: FrameInputs) -> None:
        """Submits a frame of these inputs, whose traffic began at `before`. Not while `full`."""
        device = self.data.device
        start = time.perf_counter()
        encoder = self.frame.encode()
        begun = time.perf_counter()
        self.statistics.encode(encoder)
        copies = [*self.statistics.copies(), *self.frame.tick_copies()]
        traffic = Traffic.so_far(device).since(before)
        size = sum(item[2] for item in copies)
        if self._ring is None:
            self._ring = ReadbackRing(device, size)
        sent = _Sent(replace(traffic, readback_bytes=size), inputs, self.data.history_lost)
        self._ring.encode(encoder, copies, sent)
        encoded = time.perf_counter()
        device.wgpu.queue.submit([encoder.finish()])
        submitted = time.perf_counter()
        sent.encode_ms = 1e3 * (submitted - start)
        self._ring.submitted()
        self.host_ms += 1e3 * (encoded - begun + time.perf_counter() - submitted)

    def poll(self) -> FrameStats | None:
        """Of the newest frame that has come back since the last call, without waiting."""
        if self._ring is None:
            return None
        begun = time.perf_counter()
        arrived = self._ring.poll()
        stats = self._collect(*arrived[-1]) if arrived else None
        self.host_ms += 1e3 * (time.perf_counter() - begun)
        return stats

    def _collect(self, sent: _Sent, packed: bytes) -> FrameStats:
        """Of a frame in which all went well only that is found out now."""
        layout = self.statistics.layout
        unbuilt = self.statistics.unbuilt(layout.unpack(packed)) if self.statistics.builds else []
        period_ns = self.data.device.timestamp_period_ns
        read = partial(
            _read, self.facts, layout, self.frame.names, period_ns, sent, packed, tuple(unbuilt)
        )
        if unbuilt or layout.troubled(packed):
            return read()
        return FrameStats.later(
            read,
            dropped=0,
            valid=True,
            failures=(),
            counted=self.facts.options.count,
            history_lost=sent.history_lost,
            inputs=sent.inputs,
        )


def _read(
    facts: ReadFacts,
    layout: StatisticsLayout,
    names: tuple[str, ...],
    period_ns: float,
    sent: _Sent,
    packed: bytes,
    unbuilt: tuple[str, ...],
) -> FrameStats:
    """Statistics out of what was copied of a frame with passes of these names."""
    ticks = np.frombuffer(packed, np.uint64, offset=layout.size)
    times = times_of(names, ticks, period_ns, sent.encode_ms)
    numbers, lost = layout.unpack(packed), sent.history_lost
    return collect_stats(facts, numbers, times, sent.traffic, sent.inputs, unbuilt, lost)
