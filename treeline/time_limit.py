"""How long a command that compares many things may take: `--minutes`.

What does not fit is left out and named by whoever measures; what has been begun is ended.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

NO_TIME = "no time was left"  # why something was left out


@dataclass(slots=True)
class TimeLimit:
    """Seconds that may be spent, from now on, by a clock in seconds."""

    seconds: float = math.inf
    clock: Callable[[], float] = time.perf_counter
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.clock()

    @staticmethod
    def of(minutes: float | None) -> "TimeLimit":
        """None: no limit."""
        return TimeLimit() if minutes is None else TimeLimit(60 * minutes)

    def left(self, part: float = 1.0) -> float:
        """Until so much of the whole is spent."""
        return part * self.seconds - (self.clock() - self.begun)
