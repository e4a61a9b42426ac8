"""When the host began what, beside telling the user: the CPU's side of a trace."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from treeline.measure import Progress


@dataclass(slots=True)
class Phase:
    """`end_s` is None while it lasts; `advances_s` are the ends of its parts. Seconds since the
    log began."""

    name: str
    begin_s: float
    end_s: float | None = None
    advances_s: list[float] = field(default_factory=list)


class PhaseLog:
    """A Progress that passes on what it is told, and remembers when. A phase ends where the next
    one begins, the last one at `close`."""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.perf_counter) -> None:
        self.phases: list[Phase] = []
        self._progress = progress
        self._clock = clock
        self._start = clock()

    def begin(self, text: str, total: int = 1) -> None:
        self.close()
        self.phases.append(Phase(text, self._now()))
        self._progress.begin(text, total)

    def advance(self, detail: str = "") -> None:
        if self.phases:
            self.phases[-1].advances_s.append(self._now())
        self._progress.advance(detail)

    def close(self) -> None:
        if self.phases and self.phases[-1].end_s is None:
            self.phases[-1].end_s = self._now()

    def _now(self) -> float:
        return self._clock() - self._start
