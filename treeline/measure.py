"""Measures one scene at one size: timed frames without counters, then one counted frame.

Counters change the kernel, so no time ever comes from a counted frame and no count from a timed
one beyond the queue headers; that both traced the same rays is checked by the hash of their
hits. Every frame is frame 0 again: the same rays, so that the spread is the machine's.
Times are milliseconds.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import CheckFailed
from passes.outputs import Output

# Linear sizes, relative to the report's, at which the cost model is fitted.
MODEL_SCALES = (0.5, 0.75)
MODEL_FRAMES = 5  # timed frames at each of those sizes, at most


class MeasuredFrame(Protocol):
    """What is needed of passes.hybrid.HybridFrame."""

    compile_ms: float

    def run(self, frame_index: int = 0) -> Any: ...
    def forget(self) -> None: ...
    def render(self, samples: int = 1) -> Any: ...
    def image(self) -> NDArray[np.uint8]: ...
    def aov(self, name: str) -> NDArray[Any]: ...
    def outputs(self) -> tuple[Output, ...]: ...
    def result_hash(self) -> str: ...
    def updates(self) -> tuple[Any, ...]: ...
    def hit_table(self) -> Any: ...
    def ray_spreads(self) -> dict[str, Any]: ...


# (width, height, count) -> a frame
MakeFrame = Callable[[int, int, bool], MeasuredFrame]


class Progress(Protocol):
    def begin(self, text: str, total: int = 1) -> None: ...
    def advance(self, detail: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class SizeRun:
    """One size: timed frames without counters (after `warmup` others), and one counted frame
    that hit the same things; None where none was asked for, without its hash."""

    width: int
    height: int
    warmup: int
    frames: tuple[Any, ...]  # FrameStats, timed
    counted: Any  # FrameStats, or None
    result_hash: str | None
    compile_ms: float
    image: NDArray[np.uint8]
    nodes: dict[str, NDArray[Any]]  # ray type, or sum of types -> nodes a pixel [h, w], counted
    updates: tuple[Any, ...] = ()  # passes.update_records.UpdateRecord of what deforms
    hit_table: Any = None  # passes.hit_table.HitTable, counted
    spreads: Mapping[str, Any] = field(default_factory=dict)  # passes.ray_spread.RaySpread by type
    redrawn: Any = None  # FrameStats, timed, of a frame that ran what the others reused

    def pass_ms(self, belongs: Callable[[str], bool]) -> NDArray[np.float64]:
        """[frames] the summed time of the passes whose name belongs."""
        return np.array(
            [sum(ms for name, ms in f.passes.items() if belongs(name)) for f in self.frames]
        )

    @property
    def valid(self) -> bool:
        """Whether no frame dropped a record or failed."""
        all_stats = (*self.frames, *([] if self.counted is None else [self.counted]))
        return all(stats.valid and not stats.dropped for stats in all_stats)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Everything a report says about the frame, as measured."""

    main: SizeRun
    smaller: tuple[SizeRun, ...]  # for the cost model; none: it was not fitted
    scratch_bytes: int | None  # GPU buffers of the main size's timed frame, without the scene's

    @property
    def valid(self) -> bool:
        return all(run.valid for run in (self.main, *self.smaller))


def measure(
    make_frame: MakeFrame,
    width: int,
    height: int,
    frames: int,
    warmup: int,
    progress: Progress,
    allocated_bytes: Callable[[], int] = lambda: 0,
    warmup_ms: float = 0.0,
    picture_samples: int = 1,
) -> Measurement:
    """Measures the size and those of the cost model. The picture is the mean of
    `picture_samples` frames that nobody times. `allocated_bytes` tells what the device has
    allocated so far; `warmup_ms` is what warming up takes at least, whatever the frames: an idle
    GPU needs about a second of work to reach its clock. Raises CheckFailed where a counted frame
    hit something else."""
    allocated: list[int] = []

    def make_and_weigh(width: int, height: int, count: bool) -> MeasuredFrame:
        before = allocated_bytes()
        frame = make_frame(width, height, count)
        allocated.append(allocated_bytes() - before)
        return frame

    main = measure_size(
        make_and_weigh, width, height, frames, warmup, progress, warmup_ms, picture_samples
    )
    smaller = tuple(
        measure_size(
            make_and_weigh,
            max(1, round(width * scale)),
            max(1, round(height * scale)),
            min(frames, MODEL_FRAMES),
            min(warmup, 1),
            progress,
            warmup_ms,
        )
        for scale in MODEL_SCALES
    )
    return Measurement(main, smaller, allocated[0])


def measure_size(
    make_frame: MakeFrame,
    width: int,
    height: int,
    frames: int,
    warmup: int,
    progress: Progress,
    warmup_ms: float = 0.0,
    picture_samples: int = 1,
) -> SizeRun:
    """Times, then counts one size. One frame is alive at a time, so that its pipelines are the only
    ones in use: many at once slow each other down on some drivers."""
    progress.begin(f"timing {width}x{height}", warmup + frames)
    frame = make_frame(width, height, False)
    compile_ms = frame.compile_ms
    start = time.perf_counter()
    for _ in range(warmup):
        frame.run(0)
        progress.advance("warm-up")
    while 1e3 * (time.perf_counter() - start) < warmup_ms:
        frame.run(0)
    timed: list[Any] = []
    for _ in range(frames):
        timed.append(frame.run(0))
        progress.advance(f"{timed[-1].frame_total_ms:.1f} ms")
    redrawn = None
    if timed and timed[-1].reused:
        frame.forget()
        redrawn = frame.run(0)
    result_hash = frame.result_hash()
    if picture_samples > 1:
        frame.render(picture_samples)
    image = frame.image()
    del frame

    progress.begin(f"counting {width}x{height}")
    frame = make_frame(width, height, True)
    counted = frame.run(0)
    if counted.dropped:
        counted = frame.run(0)  # the queues have grown to what the first frame needed
    progress.advance()
    counted_hash = frame.result_hash()
    if counted_hash != result_hash:
        raise CheckFailed(
            f"at {width}x{height} the counted run's hits differ from the timed run's "
            f"({counted_hash[:12]} and {result_hash[:12]}): its counts do not explain the times"
        )
    return SizeRun(
        width=width,
        height=height,
        warmup=warmup,
        frames=tuple(timed),
        counted=counted,
        result_hash=result_hash,
        compile_ms=compile_ms,
        image=image,
        nodes={str(o.ray_type): frame.aov(o.name) for o in frame.outputs() if o.count == "nodes"},
        updates=frame.updates(),
        hit_table=frame.hit_table(),
        spreads=frame.ray_spreads(),
        redrawn=redrawn,
    )


def median(values: Sequence[float] | NDArray[np.float64]) -> float:
    return float(np.median(np.asarray(values, np.float64)))


def p95(values: Sequence[float] | NDArray[np.float64]) -> float:
    return float(np.percentile(np.asarray(values, np.float64), 95))
