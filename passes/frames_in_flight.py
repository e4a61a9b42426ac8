"""Frames whose statistics are still on their way: a ring of three, so that nobody waits.

A frame is submitted with copies of its statistics and of its timestamps behind it. Some frames
later they have arrived, and say the same as if the frame had been waited for.
"""

import time
from array import array
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from engine.frame.frame import Frame, times_of
from engine.gpu.readback_ring import ReadbackRing
from passes.frame_data import FrameData
from passes.frame_stats import FrameStats
from passes.frame_uniforms import FrameInputs
from passes.read_back import (
    ReadFacts,
    Traffic,
    known_of,
    read_counts,
    read_ticks,
    read_times,
)
from passes.statistics_buffers import StatisticsBuffers, StatisticsLayout


@dataclass(slots=True)
class _Sent:
    """What the host knows of a frame when it submits it."""

    traffic: Traffic
    inputs: FrameInputs
    history_lost: str
    reused: tuple[str, ...]
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
        sent = _Sent(
            replace(traffic, readback_bytes=size),
            inputs,
            self.data.history_lost,
            self.frame.reused,
        )
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
        facts = self.facts
        counts = partial(_read_counts, facts, layout, packed, tuple(unbuilt))
        known: dict[str, Any] = {"dropped": 0, "valid": True, "failures": ()}
        if unbuilt or layout.troubled(packed):
            known = counts()
        known |= known_of(facts, sent.traffic, sent.inputs, sent.history_lost, sent.reused)
        period_ns = self.data.device.timestamp_period_ns
        ticks = packed[layout.size :]
        times = partial(_read_times, self.frame.names, ticks, period_ns, sent.encode_ms)
        return FrameStats.later(times, counts, **known)


def _read_times(
    names: tuple[str, ...], packed: bytes, period_ns: float, encode_ms: float
) -> dict[str, Any]:
    """Of a frame with passes of these names, from its copied ticks."""
    ticks = array("Q", packed)
    if len(ticks) and 0 not in ticks:
        return read_ticks(names, ticks, period_ns, encode_ms)
    return read_times(times_of(names, np.frombuffer(packed, np.uint64), period_ns, encode_ms))


def _read_counts(
    facts: ReadFacts, layout: StatisticsLayout, packed: bytes, unbuilt: tuple[str, ...]
) -> dict[str, Any]:
    return read_counts(facts, layout.unpack(packed), unbuilt)
