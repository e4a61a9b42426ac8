"""What of a view is still changing: camera or time, a setting under a slider, the size."""

from collections.abc import Callable

SETTLE_S = 0.25  # without a new camera, time or setting: it has stopped, whatever the caller says
RESIZE_S = 0.15  # that a size has to last before frames are made for it


class Settling:
    """`wanted_size` is the picture's in pixels as asked for last. `clock()` gives seconds."""

    def __init__(self, size: tuple[int, int], clock: Callable[[], float]) -> None:
        self.wanted_size = size
        self._size = size
        self._clock = clock
        self._resized_at = self._looked_at = self._adjusted_at = float("-inf")
        self._moving = False

    def look(self, moving: bool, changed: bool) -> None:
        """A camera or a time was given; `moving`: another one is about to follow."""
        self._moving = moving
        if changed:
            self._looked_at = self._clock()

    def adjust(self) -> None:
        """A setting changed for which no frame is made anew: the next value is likely to follow."""
        self._adjusted_at = self._clock()

    def resize(self, size: tuple[int, int]) -> None:
        if size != self.wanted_size:
            self.wanted_size, self._resized_at = size, self._clock()

    @property
    def moving(self) -> bool:
        now = self._clock()
        looking = self._moving and now - self._looked_at < SETTLE_S
        return looking or now - self._adjusted_at < SETTLE_S

    @property
    def size(self) -> tuple[int, int]:
        """The last that has stayed for a moment."""
        if self._clock() - self._resized_at >= RESIZE_S:
            self._size = self.wanted_size
        return self._size
