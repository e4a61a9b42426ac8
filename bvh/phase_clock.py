"""How long the parts of a build on the CPU take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class PhaseClock:
    """`with clock("pairs"): ...` adds the wall-clock milliseconds of the block to `ms["pairs"]`."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.ms[name] = self.ms.get(name, 0.0) + 1e3 * (time.perf_counter() - started)
