"""Measures one scene at one size: timed frames without counters, then one counted frame.

Counters change the kernel, so no time ever comes from a counted frame and no count from a timed
one beyond the queue headers; that both traced the same rays is checked by the hash of their
hits. Every frame is frame 0 again: the same rays, so that the spread is the machine's.
Times are milliseconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import CheckFailed

# Linear sizes, relative to the report's, at which the cost model is fitted.
MODEL_SCALES = (0.5, 0.75)
MODEL_FRAMES = 5  # timed frames at each of those sizes, at most


class MeasuredFrame(Protocol):
    """What is needed of passes.hybrid.HybridFrame."""

    def run(self, frame_index: int = 0) -> Any: ...
    def image(self) -> NDArray[np.uint8]: ...
    def aov(self, name: str) -> NDArray[Any]: ...
    def result_hash(self) -> str: ...


# (width, height, count) -> a frame
MakeFrame = Callable[[int, int, bool], MeasuredFrame]


class Progress(Protocol):
    def begin(self, text: str, total: int = 1) -> None: ...
    def advance(self, detail: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class TimedRun:
    """Frames of one size without counters; `warmup` more ran before them."""

    width: int
    height: int
    warmup: int
    first: Any  # FrameStats of the very first frame, which includes compilation
    frames: tuple[Any, ...]  # FrameStats

    def pass_ms(self, belongs: Callable[[str], bool]) -> NDArray[np.float64]:
        """[frames] the summed time of the passes whose name belongs."""
        return np.array(
            [sum(ms for name, ms in f.passes.items() if belongs(name)) for f in self.frames]
        )


@dataclass(frozen=True, slots=True)
class Measurement:
    """Everything a report says about the frame, as measured."""

    timed: TimedRun
    smaller: tuple[TimedRun, ...]  # for the cost model
    counted: Any  # FrameStats
    result_hash: str
    image: NDArray[np.uint8]
    nodes: dict[str, NDArray[Any]]  # ray type -> nodes a pixel [h, w], from the counted frame
    valid: bool  # no record was dropped in any frame


def measure(
    make_frame: MakeFrame,
    width: int,
    height: int,
    frames: int,
    warmup: int,
    progress: Progress,
) -> Measurement:
    """Runs everything; raises CheckFailed where the counted frame hit something else.

    One frame is alive at a time: each holds its own pipelines and buffers, and many of them at
    once slow each other down on some drivers.
    """
    progress.begin(f"timing {width}x{height}", warmup + frames)
    frame = make_frame(width, height, False)
    timed = time_frames(frame, width, height, frames, warmup, progress)
    timed_hash, image = frame.result_hash(), frame.image()
    del frame

    smaller = []
    for scale in MODEL_SCALES:
        small_width, small_height = max(1, round(width * scale)), max(1, round(height * scale))
        repeats = min(frames, MODEL_FRAMES)
        progress.begin(f"timing {small_width}x{small_height} for the cost model", 1 + repeats)
        frame = make_frame(small_width, small_height, False)
        smaller.append(time_frames(frame, small_width, small_height, repeats, 1, progress))
        del frame

    progress.begin(f"counting {width}x{height}")
    frame = make_frame(width, height, True)
    counted = frame.run(0)
    if counted.dropped:
        counted = frame.run(0)  # the queues have grown
    progress.advance()
    counted_hash = frame.result_hash()
    if counted_hash != timed_hash:
        raise CheckFailed(
            f"the counted run's hits differ from the timed run's ({counted_hash} and "
            f"{timed_hash}), so its counts do not explain the times"
        )
    nodes = {ray_type: frame.aov(f"nodes/{ray_type}") for ray_type in counted.rays}
    stats = (*timed.frames, *(f for run in smaller for f in run.frames), counted)
    valid = all(s.valid and not s.dropped for s in stats)
    return Measurement(timed, tuple(smaller), counted, timed_hash, image, nodes, valid)


def time_frames(
    frame: MeasuredFrame, width: int, height: int, frames: int, warmup: int, progress: Progress
) -> TimedRun:
    """`warmup` frames whose times are thrown away, then `frames` timed ones."""
    collected: list[Any] = []
    for index in range(warmup + frames):
        stats = frame.run(0)
        collected.append(stats)
        progress.advance(f"{stats.frame_total_ms:.1f} ms" if index >= warmup else "warm-up")
    return TimedRun(width, height, warmup, collected[0], tuple(collected[warmup:]))


def median(values: Sequence[float] | NDArray[np.float64]) -> float:
    return float(np.median(np.asarray(values, np.float64)))


def p95(values: Sequence[float] | NDArray[np.float64]) -> float:
    return float(np.percentile(np.asarray(values, np.float64), 95))
