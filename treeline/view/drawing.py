"""Draws one view, a part at a time, and keeps what it cost.

On a GPU (`continuous`) every step draws a frame of the full size, whose samples refine the
picture. On a CPU driver a step is one part of a frame: a small one while the camera moves; at rest
frame 0 timed, then counted (the frame that `treeline report` measures), then more samples, and then
nothing until the view changes.
"""

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import replace

from passes.frame_stats import FrameStats
from passes.frame_uniforms import FrameInputs
from passes.hybrid import HybridFrame
from passes.light_history import OTHER_FRAMES
from treeline.view.frame_set import FrameSet

CPU_SAMPLES = 64  # of a picture at rest on a CPU driver
MOST_SAMPLES = 4096  # in a mean; a later one replaces a share of it
RECENT = 64  # timed frames that medians are taken of
COUNT_EVERY = 4  # frames, while the camera moves on a GPU
MOST_REDRAWS = 4  # of frame 0: its queues once, its stacks twice
DONE = object()
Parts = Generator[None, None, FrameStats]


class Drawing:
    """The view that `inputs` describe. `frame` is the one whose buffers are to be shown (None:
    nothing is drawn yet). `timed` and `counted` are the newest statistics of this view, `first`
    those of the timed frame 0, whose rays are the counted ones; `recent` the timed ones, all with
    the same view; `samples` how many are in the picture. Timed ones also go to `history`.
    `new_numbers`: frames remember others, so that while the view moves each has random numbers of
    its own."""

    def __init__(
        self,
        frames: FrameSet,
        inputs: FrameInputs,
        history: deque[FrameStats],
        *,
        continuous: bool,
        new_numbers: bool = False,
    ) -> None:
        self.frames = frames
        self.inputs = inputs
        self.history = history
        self.continuous = continuous
        self.new_numbers = new_numbers
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
        self._firsts = 0  # frames 0 of this view whose statistics have come

    @property
    def measured(self) -> bool:
        """Whether all that is asked for is known of this view."""
        return self.timed is not None and (self.frames.counted is None or self.counted is not None)

    @property
    def _seen(self) -> FrameInputs:
        """The view, as its next frame has it."""
        return replace(self.inputs, camera_moves=True) if self._moving else self.inputs

    def look(self, inputs: FrameInputs, moving: bool) -> None:
        """Another view, from the next step on. Its camera is an object of its own, by which late
        statistics are told from those of other views."""
        self.inputs = inputs
        self.finished = False
        self.samples = self._firsts = 0
        self.first = None
        self.recent.clear()
        self._set_moving(moving)
        if not (moving and self.continuous):  # then numbers of a moment ago stay until newer ones
            self.timed = self.counted = None
        if not moving:
            self._work = None

    def step(self, moving: bool) -> None:
        """One part of the work, or a whole frame on a GPU."""
        if moving != self._moving:
            self._set_moving(moving)
            self.timed, self.counted = (
                stats if stats is not None and self._shows_this(stats) else None
                for stats in (self.timed, self.counted)
            )
        if self.continuous:
            self._draw_continuously()
            return
        if self._work is None:
            self._work = self._next_work()
        if self._work is not None and next(self._work, DONE) is DONE:
            self._work = None

    def _set_moving(self, moving: bool) -> None:
        """A frame of the full size is given up for small ones, and the other way round; a small one
        is drawn to its end while the view moves on, or none ever were."""
        if moving != self._moving:
            self._moving, self._work = moving, None
            self.finished = False

    def _next_work(self) -> Iterator[None] | None:
        if self._moving:
            return None if self._small is self.inputs else self._draw_small()
        return None if self.finished else self._draw_at_rest()

    def _first_number(self) -> int:
        """Of a picture's first frame: 0, the frame that `treeline report` measures."""
        if self._moving and self.new_numbers:
            return OTHER_FRAMES + self.drawn % MOST_SAMPLES
        return 0

    def _draw_small(self) -> Iterator[None]:
        inputs = self.inputs
        yield from self._draw(self.frames.small, self._first_number(), 1, self._seen)
        self.frame, self._small = self.frames.small, inputs
        self.drawn += 1
        yield

    def _draw_at_rest(self) -> Iterator[None]:
        if self.frames.has_small and self._small is not self.inputs:
            yield from self._draw_small()
        yield from self._draw_timed()
        if self.frames.counted is not None:
            self._take_counted((yield from self._draw_first(self.frames.counted)))
            yield
        while self.samples < CPU_SAMPLES:
            yield from self._draw_timed()
        self.finished = True

    def _draw_timed(self) -> Iterator[None]:
        """The next sample of the picture."""
        frame = self.frames.timed
        if self.samples == 0:
            stats = yield from self._draw_first(frame)
        else:
            stats = yield from self._draw(frame, self.samples, self.samples + 1, self._seen)
        self._show_timed()
        self._take_timed(stats)
        yield

    def _draw_first(self, frame: HybridFrame) -> Parts:
        """Frame 0, again where it lacked room that the next one has."""
        stats = yield from self._draw(frame, 0, 1, self._seen)
        for _ in range(MOST_REDRAWS):
            if stats.valid:
                break
            yield
            stats = yield from self._draw(frame, 0, 1, self._seen)
        return stats

    def _draw(
        self, frame: HybridFrame, frame_index: int, sample_count: int, inputs: FrameInputs
    ) -> Parts:
        """Draws one frame and returns its statistics; yields between its parts."""
        for stats in frame.steps(frame_index, sample_count, inputs):
            if stats is not None:
                return stats
            yield
        raise AssertionError("a frame ended without statistics")

    def _draw_continuously(self) -> None:
        """Takes what has come back, then submits a frame: while the view moves always frame 0, and
        now and then a counted one; at rest frame 0 until its numbers are known, then the next."""
        timed, counted = self.frames.timed, self.frames.counted
        stats = timed.poll()
        if stats is not None and (self._moving or self._shows_this(stats)):
            self._take_timed(stats)
        stats = counted.poll() if counted is not None else None
        if stats is not None and (self._moving or self._shows_this(stats)):
            self._take_counted(stats)

        self._steps += 1
        if self._moving or self._wants_again(self.first):
            self.samples = 0
        number = self.samples or self._first_number()
        if timed.submit(number, min(self.samples + 1, MOST_SAMPLES), self._seen):
            self._show_timed()
        if counted is not None and self._wants_counts():
            counted.submit(0, 1, self._seen)

    def _wants_counts(self) -> bool:
        if self._moving:
            return self._steps % COUNT_EVERY == 0
        return self._wants_again(self.counted)

    def _wants_again(self, stats: FrameStats | None) -> bool:
        """Whether frame 0 is to be drawn for these statistics: the next one may have the room that
        this one lacked."""
        return stats is None or (not stats.valid and self._firsts < MOST_REDRAWS)

    def _shows_this(self, stats: FrameStats) -> bool:
        return stats.inputs is not None and stats.inputs.camera is self.inputs.camera

    def _show_timed(self) -> None:
        self.frame = self.frames.timed
        self.samples += 1
        self.drawn += 1

    def _take_timed(self, stats: FrameStats) -> None:
        self.timed = stats
        self.history.append(stats)
        if self._shows_this(stats):
            self.recent.append(stats)
            if stats.inputs is not None and stats.inputs.frame_index == 0:
                self.first = stats
                self._firsts += 1

    def _take_counted(self, stats: FrameStats) -> None:
        self.counted = stats
        self.drawn += 1
