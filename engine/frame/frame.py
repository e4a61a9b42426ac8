"""Runs a list of passes, as one submission or in steps, and times each of them.

`Frame` is the only place that begins passes, writes timestamps and submits. It checks when it is
made that every pass reads what was given or written before it.
"""

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.frame.parts import PartSizes, part_attachments
from engine.frame.render_pass import Pass
from engine.gpu.compute_scope import ComputePasses
from engine.gpu.device import Device
from engine.gpu.timer import PassTimer, spans_ms

# A step that has used so much of its budget ends: what is left would make a sliver of a part.
FULL_STEP = 0.75


class FrameOrderError(Exception):
    """A pass reads what no earlier pass wrote and nobody gave: a fault of ours."""


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """`spans_ms` [passes, 2] begin and end from the frame's first timestamp (NaN without a
    timer); `encode_ms` is the host's time to encode and submit, `wait_ms` until it was read.
    `reused` are the passes whose results were left as an earlier frame wrote them: their spans are
    what it took to leave them out."""

    names: tuple[str, ...]
    spans_ms: NDArray[np.float64]
    encode_ms: float
    wait_ms: float
    reused: tuple[str, ...] = ()

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
        self._compute_passes = ComputePasses()
        self.part_sizes = PartSizes()
        self.timed = device.timing_source == "timestamp-query"
        self.names = tuple(p.name for p in self.passes)
        self.reused: tuple[str, ...] = ()  # passes that the frame encoded last left out
        check_order(self.passes, (*given, *self.cleared))

    def encode(self) -> Any:
        """Every pass in a command encoder that somebody else finishes and submits."""
        encoder = self._begin()
        for index, item in enumerate(self.passes):
            timestamps = self.timer.writes(index)
            if item.name not in self.reused:
                self._encode(encoder, item, timestamps)
            elif timestamps:
                # Queries that nobody writes cannot be resolved: an empty pass writes them.
                self._compute_passes.begin(encoder, item.name, timestamps).end()
        self.timer.resolve(encoder)
        for item in self.passes:
            if item.name not in self.reused:
                self._written(item)
        return encoder

    def submit(self) -> None:
        """Encodes every pass and submits once."""
        self.device.wgpu.queue.submit([self.encode().finish()])

    def _begin(self) -> Any:
        kept = [item for item in self.passes if item.kept]
        self.reused = tuple(i.name for i in kept if self.resources[i.kept].stands)
        encoder = self.device.wgpu.create_command_encoder(label="frame")
        for name, size in self.cleared.items():
            encoder.clear_buffer(self.resources[name], 0, size)
        return encoder

    def _encode(
        self,
        encoder: Any,
        item: Pass,
        timestamps: Any,
        part: tuple[int, int, int] | None = None,
    ) -> None:
        """`part` is first unit, count and total of a part; None: the whole pass."""
        scope: Any
        first, count, total = (0, 1, 1) if part is None else part
        if item.kept and first == 0:
            self.resources[item.kept].begin()  # `_written` follows once all of it is submitted
        if item.attachments is None:
            scope = self._compute_passes.begin(encoder, item.name, timestamps)
        else:
            extra = {"timestamp_writes": timestamps} if timestamps else {}
            attachments = item.attachments(self.resources)
            if part is not None:
                attachments = part_attachments(attachments, first == 0, first + count == total)
            scope = encoder.begin_render_pass(label=item.name, **attachments, **extra)
        if part is None or item.parts is None:
            item.encode(scope, self.resources)
        else:
            item.parts.encode(scope, self.resources, first, count)
        scope.end()

    def _written(self, item: Pass) -> None:
        if item.kept:
            self.resources[item.kept].end()

    def tick_copies(self) -> list[tuple[Any, int, int]]:
        """What a `ReadbackRing` has to copy behind `encode` for `times_of`."""
        return self.timer.copies() if self.timed else []

    def run(self) -> FrameTimes:
        """One frame, and the times of its passes by the device's timing source."""
        if not self.timed:
            return self._run_by_wall_clock()
        start = time.perf_counter()
        self.submit()
        submitted = time.perf_counter()
        spans = self.timer.read_ms()
        done = time.perf_counter()
        host = 1e3 * (submitted - start), 1e3 * (done - submitted)
        return FrameTimes(self.names, spans, *host, self.reused)

    def _run_by_wall_clock(self) -> FrameTimes:
        """Submits pass by pass and waits for each."""
        self._clear()
        start = time.perf_counter()
        encode_ms = 0.0
        spans = np.zeros((len(self.passes), 2))
        for index, item in enumerate(self.passes):
            began = encoded = ended = time.perf_counter()
            if item.name not in self.reused:
                encoder = self._encoder(item)
                self._encode(encoder, item, None)
                encoded, ended = self._finish(encoder)
                self._written(item)
            encode_ms += 1e3 * (encoded - began)
            spans[index] = 1e3 * (encoded - start), 1e3 * (ended - start)
        waited = float(spans[-1, 1] - encode_ms)
        return FrameTimes(self.names, spans, encode_ms, waited, self.reused)

    def steps(self, budget_ms: float) -> Generator[float, None, FrameTimes]:
        """The frame a step at a time: each is submitted and waited for, and takes about
        `budget_ms` where passes have parts. Yields what a step took, but for the last; returns the
        frame's times by the wall clock, in which a pass's is the sum over its parts and nothing
        lies between.

        It may be left at any step: the next frame begins anew."""
        self._clear()
        pass_ms = np.zeros(len(self.passes))
        encode_ms = 0.0
        began, parts_done = time.perf_counter(), 0
        for index, item in enumerate(self.passes):
            total = 1 if item.parts is None else item.parts.units(self.resources)
            done = count = 0
            if item.name in self.reused:
                total = 0
            while done < total:
                used_ms = 1e3 * (time.perf_counter() - began)
                expected_ms = self.part_sizes.unit_ms(item.name)
                full = used_ms > FULL_STEP * budget_ms or used_ms + expected_ms > budget_ms
                if full and parts_done:
                    yield used_ms
                    began, parts_done, used_ms = time.perf_counter(), 0, 0.0
                count = self.part_sizes.choose(item.name, total, count, budget_ms - used_ms)
                count = min(count, total - done, item.parts.most if item.parts else 1)
                part_began = time.perf_counter()
                encoded, ended = self._run_part(item, done, count, total)
                took_ms = 1e3 * (ended - encoded)
                self.part_sizes.measured(item.name, count, took_ms)
                encode_ms += 1e3 * (encoded - part_began)
                pass_ms[index] += took_ms
                done += count
                parts_done += 1
            if total:
                self._written(item)
        ends = np.cumsum(pass_ms)
        spans = np.stack([ends - pass_ms, ends], axis=1)
        return FrameTimes(self.names, spans, encode_ms, float(pass_ms.sum()), self.reused)

    def _run_part(self, item: Pass, first: int, count: int, total: int) -> tuple[float, float]:
        """Encodes, submits and waits for a part. When it was encoded and when it ended."""
        encoder = self._encoder(item)
        if item.parts is None or count == total:
            self._encode(encoder, item, None)
            return self._finish(encoder)
        name, offset = item.parts.at
        words = np.array(item.parts.words(first), np.uint32)
        self.device.write(self.resources[name], words, offset)
        self._encode(encoder, item, None, (first, count, total))
        times = self._finish(encoder)
        self.device.write(self.resources[name], np.zeros_like(words), offset)
        return times

    def _clear(self) -> None:
        self.device.wgpu.queue.submit([self._begin().finish()])
        self.device.wait()

    def _encoder(self, item: Pass) -> Any:
        return self.device.wgpu.create_command_encoder(label=item.name)

    def _finish(self, encoder: Any) -> tuple[float, float]:
        """Submits and waits. When it was encoded and when it ended, in seconds."""
        commands = encoder.finish()
        encoded = time.perf_counter()
        self.device.wgpu.queue.submit([commands])
        self.device.wait()
        return encoded, time.perf_counter()


def times_of(
    names: tuple[str, ...], ticks: NDArray[np.uint64], period_ns: float, encode_ms: float
) -> FrameTimes:
    """Of a frame that nobody waited for, from its copied ticks, each `period_ns` long; NaN without
    any: where the wall clock is the timing source, which needs the waits. What it `reused` its
    sender knows."""
    spans = spans_ms(ticks, period_ns) if len(ticks) else np.full((len(names), 2), np.nan)
    return FrameTimes(names, spans, encode_ms, 0.0)


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
