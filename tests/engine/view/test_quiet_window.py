"""A quiet window is built when something of it may have changed, and drawn in every frame."""

from typing import Any

import numpy as np
from imgui_bundle import imgui

from engine.view import marks
from engine.view.quiet_window import REFRESH_S, SETTLE_FRAMES, QuietWindow
from engine.view.window import FRAMES_PER_SECOND, Window

CORNER, SIZE = (20.0, 10.0), (200.0, 60.0)
EVERY = round(REFRESH_S * FRAMES_PER_SECOND)  # frames
FLAGS = imgui.WindowFlags_.no_decoration | imgui.WindowFlags_.no_saved_settings


class Quiet:
    """A quiet window with a button in it, and another window beside it."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.stale, self.asked = True, 0
        self.quiet = QuietWindow(self.is_stale)
        self.shown: tuple[Any, ...] = (1,)
        self.text, self.pressed = "Press", 0

    def is_stale(self) -> bool:
        self.asked += 1
        return self.stale

    def begin(self) -> bool:
        imgui.set_next_window_pos(CORNER)
        imgui.set_next_window_size(SIZE)
        return bool(imgui.begin("quiet", None, FLAGS)[0])

    def draw(self) -> None:
        with self.quiet.window(self.begin, CORNER, SIZE, self.shown) as build:
            if build:
                self.pressed += imgui.button(self.text)
                marks.mark("button")
            imgui.end()

    def frames(self, count: int) -> int:
        """How many of so many frames built it."""
        before = self.quiet.built
        for _ in range(count):
            self.window.draw_once(self.draw)
        return self.quiet.built - before

    def settle(self) -> None:
        self.frames(2 * SETTLE_FRAMES + EVERY)


def test_it_is_built_ten_times_a_second_and_looks_the_same_in_between(device: Any) -> None:
    window = Window(device, (240, 80), "quiet", offscreen=True)
    quiet = Quiet(window)
    quiet.settle()
    assert quiet.frames(5 * EVERY) == 5
    while not quiet.frames(1):
        pass
    built = window.picture()
    assert quiet.frames(1) == 0 and "button" in marks.rectangles
    assert len(np.unique(built[10:70, 20:220].reshape(-1, 3), axis=0)) > 3
    assert np.array_equal(window.picture(), built)
    window.close()


def test_what_is_not_stale_is_not_built_but_asked(device: Any) -> None:
    window = Window(device, (240, 80), "quiet", offscreen=True)
    quiet = Quiet(window)
    quiet.stale = False
    quiet.settle()
    asked = quiet.asked
    assert quiet.frames(5 * EVERY) == 0 and quiet.asked == asked + 5
    quiet.stale = True
    assert quiet.frames(EVERY) == 1
    quiet.stale, quiet.shown = False, (3,)
    assert quiet.frames(1) == 1
    window.close()


def test_what_it_shows_is_seen_in_the_frame_in_which_it_changes(device: Any) -> None:
    window = Window(device, (240, 80), "quiet", offscreen=True)
    quiet = Quiet(window)
    quiet.settle()
    while not quiet.frames(1):
        pass
    before = window.picture()
    quiet.text = "Another"
    assert quiet.frames(1) == 0 and np.array_equal(window.picture(), before)
    quiet.shown = (2,)
    assert quiet.frames(1) == 1 and not np.array_equal(window.picture(), before)
    quiet.settle()
    quiet.quiet.refresh()
    assert quiet.frames(1) == 1
    window.close()


def test_the_mouse_over_it_finds_it_built(device: Any) -> None:
    window = Window(device, (240, 80), "quiet", offscreen=True)
    quiet = Quiet(window)
    quiet.settle()
    x, y = marks.centre("button")
    quiet.stale = False
    window.send("pointer_move", x=x, y=y)
    assert quiet.frames(2) == 2 and quiet.quiet.settling
    # A mouse that rests asks for no frame, but is over what every frame shows.
    assert quiet.frames(10) == 10 and not quiet.quiet.settling
    window.send("wheel", x=x, y=y, dy=100)
    assert quiet.frames(1) == 1 and quiet.quiet.settling
    quiet.stale = True
    window.send("pointer_down", x=x, y=y, button=1, buttons=(1,))
    quiet.frames(1)
    window.send("pointer_move", x=230.0, y=75.0, buttons=(1,))
    assert quiet.frames(10) == 10  # the button is held
    window.send("pointer_move", x=x, y=y, buttons=(1,))
    quiet.frames(1)
    window.send("pointer_up", x=x, y=y, button=1)
    quiet.frames(2)
    assert quiet.pressed == 1
    window.send("pointer_move", x=230.0, y=75.0)
    quiet.settle()
    assert quiet.frames(5 * EVERY) == 5
    window.close()
