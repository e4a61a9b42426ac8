"""Ctrl-C and termination that nothing swallows.

A signal's exception that is raised inside one of wgpu's callbacks ends there: C code called it,
prints what it got and goes on. So the handler only notes a signal that arrives inside a callback,
and the next step of the command raises it.
"""

import signal
import sys
from types import FrameType
from typing import Any

CODE = 130  # of a command that Ctrl-C ended

_noted: list[BaseException] = []
_ended = False  # by a signal


def install() -> None:
    """Handles SIGINT (exit code 130) and SIGTERM (143) as exceptions, so that temporary files are
    removed on the way out."""
    signal.signal(signal.SIGINT, _handle)
    signal.signal(signal.SIGTERM, _handle)
    sys.unraisablehook = _keep


def check() -> None:
    """Raises what was noted."""
    if _noted:
        raise _noted[-1]


def _handle(number: int, frame: FrameType | None) -> None:
    global _ended
    _ended = True
    error: BaseException = KeyboardInterrupt()
    if number == signal.SIGTERM:
        error = SystemExit(128 + number)
    if _inside_callback(frame):
        _noted.append(error)
    else:
        raise error


def _keep(unraisable: Any) -> None:
    # A destructor's or a callback's exception goes nowhere by itself.
    if isinstance(unraisable.exc_value, KeyboardInterrupt | SystemExit):
        _noted.append(unraisable.exc_value)
    elif not _ended:  # else an object that was half made when the signal came is taken away
        sys.__unraisablehook__(unraisable)


def _inside_callback(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if "callback" in code.co_name and "wgpu" in code.co_filename:
            return True
        frame = frame.f_back
    return False
