"""A mouse that only moves over a panel is followed, without a build of the interface a frame."""

from collections.abc import Callable
from typing import Any

from engine.view import marks
from engine.view.interface_pace import HOVER_S
from engine.view.quiet_window import SETTLE_FRAMES
from engine.view.window import FRAMES_PER_SECOND

FRAMES = 40
APART = -int(-HOVER_S * FRAMES_PER_SECOND // 1)  # frames from one build to the next


def test_a_passing_mouse_has_some_frames_built(open_viewer: Callable[..., Any]) -> None:
    person = open_viewer(continuous=True)  # numbers that follow each other ask for no build
    person.settle()
    pace = person.window.pace
    x, y = marks.centre("controls.leaf")
    person.pointer("pointer_move", x, y)
    person.frames(4 * SETTLE_FRAMES)
    built, replayed = pace.built, pace.replayed
    for step in range(FRAMES):
        person.pointer("pointer_move", x + step % 7, y)
        person.frames()
    built, replayed = pace.built - built, pace.replayed - replayed
    assert built + replayed == FRAMES
    # Not one a frame, but those that the mouse is followed in, and a few for what came meanwhile.
    assert FRAMES // APART - 1 <= built <= FRAMES // APART + 2 * SETTLE_FRAMES
    # What was passed last is seen as soon as the mouse rests.
    person.frames(APART)
    assert not pace.hovering
