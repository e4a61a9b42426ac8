"""Pass times of the last frames as arrays, kept up as frames come in."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from passes.frame_stats import FrameStats


class PassHistory:
    """`series` maps each pass to its newest `frames` times, the newest last, in the order in which
    passes were first seen; NaN where a frame had no such pass or no timer."""

    def __init__(self, frames: int) -> None:
        self.frames = frames
        self.series: dict[str, Any] = {}
        self._newest: FrameStats | None = None

    def follow(self, history: Sequence[FrameStats]) -> None:
        """Takes in what has come to a history since the last call."""
        newest = self._newest
        fresh = list(takewhile(lambda stats: stats is not newest, reversed(history)))
        if not fresh:
            return
        self._newest = fresh[0]
        passes = [stats.passes for stats in reversed(fresh[: self.frames])]
        for name in dict.fromkeys(name for row in passes for name in row):
            if name not in self.series:
                self.series[name] = np.full(self.frames, np.nan)
        count = len(passes)
        for name, values in list(self.series.items()):
            values[: self.frames - count] = values[count:]
            values[self.frames - count :] = [row.get(name, np.nan) for row in passes]
            if name not in passes[-1] and np.isnan(values).all():
                del self.series[name]  # of settings long gone


def pass_rows(frames: Iterable[FrameStats]) -> list[tuple[Any, ...]]:
    """(pass, median, mean, 95th percentile, newest, % of the frame), ms, and the frame itself and
    its gaps at the end; of frames of one view. None where there was no timer. A pass that the
    newest frame left out is named so."""
    frames = list(frames)
    if not frames:
        return []
    reused = frames[-1].reused
    passes = [f"{name} (reused)" if name in reused else name for name in frames[-1].passes]
    names = (*passes, "frame", "gaps")
    times = np.array(
        [
            (*stats.passes.values(), stats.frame_total_ms, stats.frame_gaps_ms)
            for stats in frames
            if len(stats.passes) == len(names) - 2
        ]
    )
    times = times[np.isfinite(times).all(axis=1)]
    if not len(times):
        return [(name, None, None, None, None, None) for name in names]
    median, p95 = np.median(times, axis=0), np.percentile(times, 95, axis=0)
    share = 100 * median / median[-2] if median[-2] else np.full(len(names), np.nan)
    columns = (median, times.mean(axis=0), p95, times[-1], share)
    return list(zip(names, *(column.tolist() for column in columns), strict=True))
