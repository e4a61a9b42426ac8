"""The time line opens on the frame that `treeline report` measures, and enters a clip by itself."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.view import marks

DOING: dict[str, Callable[[Any], None]] = {
    "play": lambda line: line.toggle(),
    "step": lambda line: line.step(1),
    "scrub": lambda line: line.scrub(0.25),
    "path": lambda line: line.follow_path(True),
}


def test_it_opens_as_the_file_stands(open_viewer: Callable[..., Any]) -> None:
    person = open_viewer()
    person.frames(4)
    line = person.viewer.time_line
    assert line.spans and line.clip is None
    assert (person.session.clip, person.session.time) == (None, 0.0)
    left, top, right, bottom = marks.rectangles["time.time"]
    person.drag("time.time", 0.25 * (right - left))
    person.frames(2)
    assert line.clip == person.session.clip == line.spans[0].name
    assert person.session.time > 0.0


@pytest.mark.parametrize("name", DOING)
def test_what_makes_time_pass_enters_the_first_clip(
    name: str, open_viewer: Callable[..., Any]
) -> None:
    line = open_viewer().viewer.time_line
    DOING[name](line)
    assert line.clip == line.spans[0].name and line.transport.duration >= line.spans[0].duration


def test_a_still_scene_that_was_chosen_stays_still(open_viewer: Callable[..., Any]) -> None:
    line = open_viewer().viewer.time_line
    line.choose(None)
    line.toggle()
    assert line.clip is None
