"""Ctrl-C and termination wait for a few steps that belong together."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals_held() -> Iterator[None]:
    """Signals that come inside are raised at its end: for what takes milliseconds at most.

    By handlers, not by a signal mask: with other threads about, the kernel hands a signal that
    this thread masks to one of them, and Python raises it here all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)
