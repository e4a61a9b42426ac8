"""Runs a list of passes as one submission and times each of them.

`Frame` is the only place that begins passes, writes timestamps and submits. It checks when it is
made that every pass reads what was given or written before it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.frame.render_pass import Pass
from engine.gpu.device import Device
from engine.gpu.timer import PassTimer


class FrameOrderError(Exception):
    """A pass reads what no earlier pass wrote and nobody gave: a fault of ours."""


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """`spans_ms` [passes, 2] begin and end from the frame's first timestamp (NaN without a
    timer); `encode_ms` is the host's time to encode and submit, `wait_ms` until it was read."""

    names: tuple[str, ...]
    spans_ms: NDArray[np.float64]
    encode_ms: float
    wait_ms: float

    @property
    def passes_ms(self) -> dict[str, float]:
        spans = self.spans_ms
        return dict(zip(self.names, (spans[:, 1] - spans[:, 0]).tolist(), strict=True))

    @property
    def total_ms(self) -> float:
        """Last end minus first begin."""
        return float(self.spans_ms[:, 1].max() - self.spans_ms[:, 0].min())

    @property
    def gaps_ms(self) -> float:
        """The part of the total that no pass covers."""
        return self.total_ms - float(np.sum(self.spans_ms[:, 1] - self.spans_ms[:, 0]))


class Frame:
    """`passes` in order over `resources` (name -> buffer or texture view).

    `given` names resources that hold data before the frame; `cleared` maps buffers to the bytes
    that are zeroed at their start when the frame begins (queue headers, counters; None: all).
    """

    def __init__(
        self,
        device: Device,
        passes: Sequence[Pass],
        resources: Mapping[str, Any],
        *,
        given: Sequence[str] = (),
        cleared: Mapping[str, int | None] | None = None,
    ) -> None:
        self.device = device
        self.passes = tuple(passes)
        self.resources = dict(resources)
        self.cleared = dict(cleared or {})
        self.timer = PassTimer(device, len(self.passes))
        self.names = tuple(p.name for p in self.passes)
        check_order(self.passes, (*given, *self.cleared))

    def submit(self) -> None:
        """Encodes every pass and submits once."""
        encoder = self._begin()
        for index, item in enumerate(self.passes):
            self._encode(encoder, item, self.timer.writes(index))
        self.timer.resolve(encoder)
        self.device.wgpu.queue.submit([encoder.finish()])

    def _begin(self) -> Any:
        encoder = self.device.wgpu.create_command_encoder(label="frame")
        for name, size in self.cleared.items():
            encoder.clear_buffer(self.resources[name], 0, size)
        return encoder

    def _encode(self, encoder: Any, item: Pass, timestamps: Any) -> None:
        extra = {"timestamp_writes": timestamps} if timestamps else {}
        if item.attachments is None:
            scope = encoder.begin_compute_pass(label=item.name, **extra)
        else:
            attachments = item.attachments(self.resources)
            scope = encoder.begin_render_pass(label=item.name, **attachments, **extra)
        item.encode(scope, self.resources)
        scope.end()

    def run(self) -> FrameTimes:
        """One frame, and the times of its passes by the device's timing source."""
        if self.device.timing_source == "wall-clock":
            return self._run_by_wall_clock()
        start = time.perf_counter()
        self.submit()
        submitted = time.perf_counter()
        spans = self.timer.read_ms()
        done = time.perf_counter()
        return FrameTimes(self.names, spans, 1e3 * (submitted - start), 1e3 * (done - submitted))

    def _run_by_wall_clock(self) -> FrameTimes:
        """Submits pass by pass and waits for each."""
        device = self.device
        device.wgpu.queue.submit([self._begin().finish()])
        device.wait()
        start = time.perf_counter()
        encode_ms = 0.0
        spans = np.zeros((len(self.passes), 2))
        for index, item in enumerate(self.passes):
            began = time.perf_counter()
            encoder = device.wgpu.create_command_encoder(label=item.name)
            self._encode(encoder, item, None)
            commands = encoder.finish()
            encoded = time.perf_counter()
            device.wgpu.queue.submit([commands])
            device.wait()
            encode_ms += 1e3 * (encoded - began)
            spans[index] = 1e3 * (encoded - start), 1e3 * (time.perf_counter() - start)
        return FrameTimes(self.names, spans, encode_ms, float(spans[-1, 1] - encode_ms))


def check_order(passes: Sequence[Pass], given: Sequence[str]) -> None:
    """Raises FrameOrderError where a pass reads what nobody wrote, overwrites what an earlier
    pass wrote without reading it, or shares its name with another pass."""
    known = set(given)
    written: set[str] = set()
    names: set[str] = set()
    for item in passes:
        if item.name in names:
            raise FrameOrderError(f"two passes are named {item.name}")
        names.add(item.name)
        produced = {w for w in item.writes if w not in known}
        for name in item.reads:
            if name not in known and name not in produced:
                raise FrameOrderError(f"{item.name} reads {name}, which nobody wrote")
        for name in item.writes:
            if name in written and name not in item.reads:
                raise FrameOrderError(f"{item.name} overwrites {name} without reading it")
        written.update(item.writes)
        known.update(item.writes)
