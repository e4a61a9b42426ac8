"""A signal that arrives inside a driver's callback is raised by the next step."""

import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from treeline.cli import interrupts
from treeline.cli.console import Steps


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(interrupts, "_ended", False)
    interrupts._noted.clear()
    yield
    interrupts._noted.clear()


def frame(name: str, file: str, back: Any = None) -> Any:
    return SimpleNamespace(f_code=SimpleNamespace(co_name=name, co_filename=file), f_back=back)


def test_outside_a_callback_it_is_raised_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupts._handle(signal.SIGINT, frame("run", "frame.py"))
    with pytest.raises(SystemExit) as caught:
        interrupts._handle(signal.SIGTERM, None)
    assert caught.value.code == 143
    interrupts.check()


def test_inside_a_callback_the_next_step_raises_it() -> None:
    inner = frame("helper", "_api.py", frame("buffer_map_callback", "wgpu/_api.py"))
    interrupts._handle(signal.SIGINT, inner)
    with pytest.raises(KeyboardInterrupt):
        Steps(None, True).advance()
    with pytest.raises(KeyboardInterrupt):
        Steps(None, True).begin("next")


def test_what_a_destructor_swallowed_is_raised_too() -> None:
    interrupts._keep(SimpleNamespace(exc_value=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        interrupts.check()


def test_what_a_signal_left_half_made_is_taken_away_quietly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(interrupts.sys, "__unraisablehook__", shown.append)
    half_made = SimpleNamespace(exc_value=AttributeError("no attribute '_internal'"))
    interrupts._keep(half_made)
    assert shown == [half_made]
    with pytest.raises(SystemExit):
        interrupts._handle(signal.SIGTERM, None)
    interrupts._keep(half_made)
    assert shown == [half_made]
