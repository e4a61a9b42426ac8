"""Frames are drawn until they have the room that they need, and not for ever."""

from types import SimpleNamespace
from typing import Any

import pytest

from engine.gpu.errors import CheckFailed
from treeline.whole_frame import DRAWS, draw_whole


class Failing:
    """A frame whose first `fails` draws fail."""

    def __init__(self, fails: int, *failures: str) -> None:
        self.fails, self.failures = fails, failures
        self.drawn: list[tuple[Any, ...]] = []

    def run(self, *given: Any) -> Any:
        self.drawn.append(given)
        return SimpleNamespace(valid=len(self.drawn) > self.fails, failures=self.failures)


def test_a_frame_is_drawn_until_it_is_whole() -> None:
    for fails in range(DRAWS):
        frame: Any = Failing(fails)
        inputs: Any = object()
        assert draw_whole(frame, 3, 2, inputs).valid
        assert frame.drawn == [(3, 2, inputs)] * (fails + 1)


def test_one_that_fails_always_is_told() -> None:
    frame: Any = Failing(DRAWS, "2 rays", "a stack")
    with pytest.raises(CheckFailed, match="^a counted frame failed: 2 rays; a stack$"):
        draw_whole(frame, name="a counted frame")
    assert len(frame.drawn) == DRAWS
    with pytest.raises(CheckFailed, match="^a frame failed: no room in its queues$"):
        draw_whole(Failing(DRAWS))
