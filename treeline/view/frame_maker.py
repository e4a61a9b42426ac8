"""Makes frames in a thread: compiling a traversal kernel takes longer than a UI frame may.

wgpu's calls leave the interpreter to others while they compile. After frames have been handed out,
what the ones before them and the compiler held goes back to the system, in the same thread.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from engine.gpu.host_memory import give_back_free_blocks
from treeline.view.frame_set import FrameSet


class FrameMaker:
    """One thing is made at a time; only what was asked for last is handed out. `in_background`
    False makes it in `request`, for tests and scripts that wait anyway."""

    def __init__(self, in_background: bool = True) -> None:
        self._pool = ThreadPoolExecutor(1, "frames") if in_background else None
        self._key: Hashable = None
        self._made: Future[FrameSet] | None = None

    @property
    def busy(self) -> bool:
        return self._made is not None

    def request(self, key: Hashable, make: Callable[[], FrameSet]) -> None:
        """Nothing changes if that is being made already."""
        if self._made is not None and key == self._key:
            return
        if self._made is not None:
            self._made.cancel()
        self._key = key
        if self._pool is not None:
            self._made = self._pool.submit(make)
            return
        self._made = Future()
        try:
            self._made.set_result(make())
        except Exception as error:
            self._made.set_exception(error)

    def take(self, key: Hashable) -> FrameSet | None:
        """What was asked for by this key, once it is there; raises what making it raised."""
        if self._made is None or key != self._key or not self._made.done():
            return None
        made, self._made = self._made, None
        if self._pool is not None:
            self._pool.submit(give_back_free_blocks)
        return made.result()

    def drop(self) -> None:
        """Nothing that is being made is wanted."""
        if self._made is not None:
            self._made.cancel()
            self._made = None

    def close(self) -> None:
        self.drop()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
