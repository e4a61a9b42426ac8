"""An interface is built whenever it may look different, and ten times a second; not more often."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui

from engine.view.interface_pace import InterfacePace
from engine.view.quiet_window import REFRESH_S, SETTLE_FRAMES
from engine.view.window import FRAMES_PER_SECOND, Window

EVERY = round(REFRESH_S * FRAMES_PER_SECOND)  # frames
FRAME_S = 1.0 / FRAMES_PER_SECOND


class Still:
    """Contents of which nothing changes by itself."""

    def __init__(self) -> None:
        self.dragging = self.new = False
        self.steps: list[tuple[float, Any]] = []

    def changed(self) -> bool:
        new, self.new = self.new, False
        return new

    def step(self, seconds: float, pointer: tuple[float, float] | None) -> None:
        self.steps.append((seconds, pointer))


class Paced:
    """A pace whose frames are counted."""

    def __init__(self) -> None:
        self.pace, self.still, self.place = InterfacePace(), Still(), (10, 10)
        self.busy = False
        self.frames(SETTLE_FRAMES + 2 * EVERY)
        while self.frames(1) == "r":
            pass

    def frames(self, count: int) -> str:
        """A letter a frame: b built, r replayed."""
        return "".join(
            "r" if self.pace.replays(FRAME_S, self.place, self.busy, self.still) else "b"
            for _ in range(count)
        )

    def event(self, kind: str, **fields: Any) -> None:
        self.pace.take({"event_type": kind, **fields})


SETTLED = "b" * (1 + SETTLE_FRAMES) + "r"


def test_ten_times_a_second_at_rest() -> None:
    paced = Paced()
    assert paced.frames(3 * EVERY) == 3 * ("r" * (EVERY - 1) + "b")


@pytest.mark.parametrize("kind", ["pointer_down", "pointer_up", "wheel", "char", "pointer_leave"])
def test_an_event_is_seen_at_once_even_in_a_drag(kind: str) -> None:
    paced = Paced()
    paced.still.dragging = True
    paced.event(kind)
    assert paced.frames(len(SETTLED)) == SETTLED


def test_moves_belong_to_a_drag_or_are_seen() -> None:
    paced = Paced()
    assert paced.frames(1) == "r"
    paced.event("pointer_move", x=3.7, y=4.2)
    assert paced.frames(len(SETTLED)) == SETTLED and paced.pace.pointer == (3.0, 4.0)
    paced.still.dragging = paced.busy = True
    paced.event("pointer_move", x=5.0, y=4.0)
    assert paced.frames(1) == "r"
    paced.still.dragging = False  # a widget is held
    assert paced.frames(2) == "bb"


def test_a_mouse_that_passes_is_followed_forty_times_a_second() -> None:
    paced = Paced()
    built = paced.frames(1)
    for x in range(12):
        paced.event("pointer_move", x=float(x), y=0.0)
        built += paced.frames(1)
        assert paced.pace.hovering == (built[-1] == "r"), "the last place is still to be built"
    assert built == "r" + "br" * 6
    assert paced.frames(len(SETTLED)) == SETTLED
    paced.event("pointer_down")  # a button is no hurry's
    assert paced.frames(1) == "b"


def test_held_keys_repeat_and_modifiers_do_not() -> None:
    paced = Paced()
    paced.event("key_down", key="w")
    assert paced.frames(2 * EVERY) == "b" * 2 * EVERY
    paced.event("key_up", key="w")
    assert paced.frames(len(SETTLED)) == SETTLED
    paced.event("key_down", key="Shift")
    assert paced.frames(len(SETTLED)) == SETTLED


def test_changes_and_sizes_are_seen_at_once() -> None:
    paced = Paced()
    paced.still.new = True
    assert paced.frames(len(SETTLED)) == SETTLED
    paced.place = (11, 10)
    assert paced.frames(len(SETTLED)) == SETTLED
    paced.pace.refresh()
    assert paced.frames(1) == "b"


def test_replayed_window_looks_the_same_and_time_is_not_lost(
    open_window: Callable[..., Window],
) -> None:
    window, still = open_window((200, 60)), Still()
    built: list[float] = []

    def draw() -> None:
        imgui.text("shown")
        built.append(imgui.get_io().delta_time)

    for _ in range(30):
        window.draw_once(draw, still)
    assert window.pace.replayed == len(still.steps) and window.pace.built == len(built)
    assert len(still.steps) > len(built)
    assert sum(built[1:]) == pytest.approx(FRAME_S * 30, abs=1.5 * EVERY * FRAME_S)
    picture = window.picture()
    window.draw_once(draw, still)
    # What a replay puts on the target itself, not what `picture` draws anew.
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 2
    assert np.array_equal(window._target.read(), picture)
    count = len(built)
    window.send("pointer_down", x=5, y=5, button=1)
    window.draw_once(draw, still)
    assert len(built) == count + 1


def test_without_contents_that_go_on_every_frame_is_built(
    open_window: Callable[..., Window],
) -> None:
    window = open_window((40, 40))
    for _ in range(12):
        window.draw_once(lambda: None)
    assert (window.pace.built, window.pace.replayed) == (12, 0)
