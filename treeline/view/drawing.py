"""Draws one view, a part at a time, and keeps what it cost.

On a GPU (`continuous`) every step draws a frame of the full size, whose samples refine the
picture. On a CPU driver a step is one part of a frame: a small one while the camera moves; at rest
frame 0 timed, then counted (the frame that `treeline report` measures), then more samples, and then
nothing until the view changes.
"""

from collections import deque
from collections.abc import Generator, Iterator

from passes.frame_stats import FrameStats
from passes.frame_uniforms import FrameInputs
from passes.hybrid import HybridFrame
from treeline.view.frame_set import FrameSet

CPU_SAMPLES = 64  # of a picture at rest on a CPU driver
MOST_SAMPLES = 4096  # in a mean; a later one replaces a share of it
RECENT = 64  # timed frames that medians are taken of
COUNT_EVERY = 4  # frames, while the camera moves on a GPU
DONE = object()


class Drawing:
    """The view that `inputs` describe. `frame` is the one whose buffers are to be shown (None:
    nothing is drawn yet). `timed` and `counted` are the newest statistics of this view, `first`
    those of the timed frame 0, whose rays are the counted ones; `recent` the timed ones, all with
    the same view; `samples` how many are in the picture. Timed ones also go to `history`."""

    def __init__(
        self,
        frames: FrameSet,
        inputs: FrameInputs,
        history: deque[FrameStats],
        *,
        continuous: bool,
    ) -> None:
        self.frames = frames
        self.inputs = inputs
        self.history = history
        self.continuous = continuous
        self.frame: HybridFrame | None = None
        self.timed: FrameStats | None = None
        self.counted: FrameStats | None = None
        self.first: FrameStats | None = None
        self.recent: deque[FrameStats] = deque(maxlen=RECENT)
        self.samples = 0
        self.drawn = 0  # frames whose pictures or counts have come to be shown
        self._moving = False
        self._work: Iterator[None] | None = None
        self._small: FrameInputs | None = None  # what the small frame shows
        self.finished = False  # nothing is left to draw
        self._steps = 0

    @property
    def measured(self) -> bool:
        """Whether all that is asked for is known of this view."""
        return self.timed is not None and (self.frames.counted is None or self.counted is not None)

    def look(self, inputs: FrameInputs) -> None:
        """Another view, from the next step on."""
        self.inputs = inputs
        self.finished = False
        self.samples = 0
        if self._moving and self.continuous:
            return  # numbers that are a few frames old stay until newer ones come
        self._forget()

    def _forget(self) -> None:
        self.timed = self.counted = self.first = None
        self.recent.clear()
        self.samples, self.finished = 0, False
        if not self._moving:
            self._work = None  # a small frame is drawn to its end, or none ever were

    def step(self, moving: bool) -> None:
        """One part of the work, or a whole frame on a GPU."""
        if moving != self._moving:
            self._moving, self._work = moving, None
            self._forget()
        if self.continuous:
            self._draw_continuously()
            return
        if self._work is None:
            self._work = self._next_work()
        if self._work is not None and next(self._work, DONE) is DONE:
            self._work = None

    def _next_work(self) -> Iterator[None] | None:
        if self._moving:
            return None if self._small is self.inputs else self._draw_small()
        return None if self.finished else self._draw_at_rest()

    def _draw_small(self) -> Iterator[None]:
        inputs = self.inputs
        yield from self._draw(self.frames.small, 0, 1, inputs)
        self.frame, self._small = self.frames.small, inputs
        self.drawn += 1
        yield

    def _draw_at_rest(self) -> Iterator[None]:
        if self.frames.has_small and self._small is not self.inputs:
            yield from self._draw_small()
        yield from self._draw_timed()
        if self.frames.counted is not None:
            self._take_counted((yield from self._draw(self.frames.counted, 0, 1, self.inputs)))
            yield
        while self.samples < CPU_SAMPLES:
            yield from self._draw_timed()
        self.finished = True

    def _draw_timed(self) -> Iterator[None]:
        """The next sample of the picture."""
        stats = yield from self._draw(
            self.frames.timed, self.samples, self.samples + 1, self.inputs
        )
        self._take_timed(stats)
        yield

    def _draw(
        self, frame: HybridFrame, frame_index: int, sample_count: int, inputs: FrameInputs
    ) -> Generator[None, None, FrameStats]:
        """Draws one frame and returns its statistics; yields between its parts."""
        return frame.run(frame_index, sample_count, inputs)
        yield

    def _draw_continuously(self) -> None:
        """A frame, and a counted one now and then while the camera moves, once where it rests."""
        self._steps += 1
        counted = self.frames.counted
        if self._moving:
            self._take_timed(self.frames.timed.run(0, 1, self.inputs))
            self.samples = 1
            if counted is not None and self._steps % COUNT_EVERY == 0:
                self._take_counted(counted.run(0, 1, self.inputs))
            return
        sample = min(self.samples + 1, MOST_SAMPLES)
        self._take_timed(self.frames.timed.run(self.samples, sample, self.inputs))
        if counted is not None and self.counted is None:
            self._take_counted(counted.run(0, 1, self.inputs))

    def _take_timed(self, stats: FrameStats) -> None:
        if self.samples == 0:
            self.first = stats
        self.timed, self.frame = stats, self.frames.timed
        self.samples += 1
        self.drawn += 1
        self.recent.append(stats)
        self.history.append(stats)

    def _take_counted(self, stats: FrameStats) -> None:
        self.counted = stats
        self.drawn += 1
