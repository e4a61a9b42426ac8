"""A new option, output, pass or ray type shows in the viewer by being declared: no line of it is
changed for that."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from engine.frame.render_pass import Pass
from engine.view import marks
from passes.option_list import OPTIONS, find_option
from passes.outputs import PASS_OUTPUTS, frame_outputs
from passes.rays import RAY_TYPES

Open = Callable[..., Any]


@pytest.fixture(autouse=True)
def fresh_lists() -> Iterator[None]:
    """Outputs are listed once for the same options; not here."""
    frame_outputs.cache_clear()
    yield
    frame_outputs.cache_clear()


@pytest.fixture(scope="module")
def person(open_viewer: Open) -> Any:
    person = open_viewer(size=(960, 2200))
    person.settle()
    return person


def test_an_option(person: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    new = replace(find_option("exposure"), name="brightness", label="brightness")
    monkeypatch.setattr("treeline.view.controls_panel.OPTIONS", (*OPTIONS, new))
    person.viewer.act("panel Controls")
    person.frames(4)
    left, _, right, _ = marks.rectangles["controls.brightness"]
    person.drag("controls.brightness", 0.3 * (right - left))
    assert person.session.settings.frame.exposure > 1.0


def test_an_output(person: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    new = replace(PASS_OUTPUTS[1], name="distance", label="distance")
    monkeypatch.setattr("passes.outputs.PASS_OUTPUTS", (*PASS_OUTPUTS, new))
    person.viewer.act("panel Heat map")
    person.frames(4)
    person.click("heat.distance")
    assert person.state.shown == "distance"
    person.click("menu.View")
    assert "menu.show distance" in marks.rectangles
    person.press("Escape")
    person.viewer.act("show picture")


def test_a_pass(open_viewer: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    from passes import hybrid

    make = hybrid.hybrid_passes

    def with_another(*arguments: Any) -> list[Pass]:
        passes = make(*arguments)
        return [*passes, replace(passes[-1], name="glow")]

    monkeypatch.setattr(hybrid, "hybrid_passes", with_another)
    person = open_viewer(size=(960, 2200))
    person.settle()
    person.viewer.act("panel Passes")
    person.frames(4)
    panel = next(p for p in person.viewer.panels if p.title == "Passes")
    assert "glow" in panel.history.series
    assert "glow" in panel.table.csv()


def test_a_ray_type(person: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the lists; that a frame traces it is the frame's test."""
    new = replace(RAY_TYPES[0], name="glow")
    monkeypatch.setattr("passes.outputs.frame_rays", lambda options: (*RAY_TYPES, new))
    monkeypatch.setattr("passes.outputs.RAY_TYPES", (*RAY_TYPES, new))
    person.viewer.act("panel Heat map")
    person.frames(4)
    assert {"heat.glow", "heat.nodes/glow"} <= set(marks.rectangles)
