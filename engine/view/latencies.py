"""The newest times of something, and a percentile of them at any moment."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator


class Latencies:
    """The `most` newest, oldest first. They lie sorted, too: to sort a thousand of them whenever a
    status bar shows `p95` would cost more than the bar."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._newest: deque[float] = deque()
        self._sorted: list[float] = []

    def append(self, value: float) -> None:
        if len(self._newest) == self._most:
            self._drop(self._newest.popleft())
        self._newest.append(value)
        insort(self._sorted, value)

    def pop(self) -> float:
        """The newest, which is forgotten."""
        value = self._newest.pop()
        self._drop(value)
        return value

    def clear(self) -> None:
        self._newest.clear()
        self._sorted.clear()

    def _drop(self, value: float) -> None:
        del self._sorted[bisect_left(self._sorted, value)]

    def __len__(self) -> int:
        return len(self._newest)

    def __iter__(self) -> Iterator[float]:
        return iter(self._newest)

    def __getitem__(self, index: int) -> float:
        return self._newest[index]

    @property
    def p95(self) -> float:
        """As `np.percentile` has it; 0 of none."""
        if not self._sorted:
            return 0.0
        place = 0.95 * (len(self._sorted) - 1)
        below = int(place)
        low = self._sorted[below]
        high = self._sorted[min(below + 1, len(self._sorted) - 1)]
        return low + (high - low) * (place - below)
