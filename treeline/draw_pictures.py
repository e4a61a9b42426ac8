"""Draws a frame's picture, or one of its outputs, once or along a camera path."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from treeline.measure import Progress
from treeline.pictures import view_aov
from treeline.playback import Playback

U8 = NDArray[np.uint8]


def draw(frame: HybridFrame, samples: int = 1, first: int = 0) -> tuple[FrameStats, str]:
    """The mean of so many frames, numbered from `first` on; statistics, and the hash of the first
    frame's hits."""
    stats = frame.run(first)
    if stats.dropped:
        stats = frame.run(first)  # the queues have grown to what the first frame needed
    result_hash = frame.result_hash()
    return frame.render(samples, first) if samples > 1 else stats, result_hash


def pixels_of(frame: HybridFrame, aov: str | None) -> U8:
    """The picture, or the output of that name as one."""
    pixels: U8 = frame.image() if aov is None else view_aov(aov, frame.aov(aov))
    return pixels


class PathDrawing:
    """Draws `playback` with `samples` frames a picture. After `pictures`, `stats` are the last
    one's, invalid where any was, and `result_hash` the first one's."""

    def __init__(
        self,
        frame: HybridFrame,
        playback: Playback,
        samples: int,
        aov: str | None,
        progress: Progress,
    ) -> None:
        self.frame, self.playback, self.progress = frame, playback, progress
        self.samples, self.aov = 1 if aov else samples, aov
        self.stats: FrameStats | None = None
        self.result_hash = ""

    def pictures(self) -> Iterator[U8]:
        """One after the other, as they are asked for."""
        frame, count = self.frame, len(self.playback.offsets)
        self.progress.begin(f"rendering {count} frames of the camera path", count)
        for number in range(count):
            frame.inputs = self.playback.inputs(frame.inputs, number)
            # What is remembered gains nothing from the same random numbers once more.
            first = number * self.samples if frame.options.history else 0
            stats, result_hash = draw(frame, self.samples, first)
            if self.stats is not None and not self.stats.valid:
                stats = replace(stats, valid=False, failures=self.stats.failures)
            self.stats, self.result_hash = stats, self.result_hash or result_hash
            self.progress.advance(f"{stats.frame_total_ms:.1f} ms")
            yield pixels_of(frame, self.aov)
