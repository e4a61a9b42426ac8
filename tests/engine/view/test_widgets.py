"""The smaller widgets, each driven by the mouse."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui

from engine.view import marks, theme
from engine.view.panels.colours import PALETTE, series_colour
from engine.view.panels.history import LABEL_GAP, draw_history, label_offsets, nice_ceiling
from engine.view.panels.legend import legend
from engine.view.panels.message import message_box
from engine.view.panels.options import Beside, draw_options
from engine.view.panels.range_slider import range_slider
from engine.view.panels.spans import Span, draw_spans
from engine.view.panels.transport import Transport, draw_transport

GREY = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, 1)


class Range:
    def __init__(self, low: float, high: float, limits: tuple[float, float], **more: Any) -> None:
        self.low, self.high, self.limits, self.more = low, high, limits, more

    def __call__(self) -> None:
        new = range_slider("r", self.low, self.high, *self.limits, **self.more)
        if new is not None:
            self.low, self.high = new


def test_range_slider_handles(drive: Callable[..., Any]) -> None:
    shown = Range(20.0, 60.0, (0.0, 100.0), width=318.0)  # 3 pixels a unit between the handles
    user = drive(shown)
    user.drag("r.low", 30)
    assert shown.low == pytest.approx(30, abs=0.5) and shown.high == 60
    user.drag("r.high", 60)
    assert shown.high == pytest.approx(80, abs=0.5) and shown.low == pytest.approx(30, abs=0.5)
    user.drag("r.low", 1000)
    assert shown.low == shown.high, "handles do not pass each other"
    user.drag("r.high", 1000)
    assert shown.high == 100
    user.drag("r.low", -1000)
    assert shown.low == 0


def test_range_slider_bar_moves_both(drive: Callable[..., Any]) -> None:
    shown = Range(20.0, 60.0, (0.0, 100.0), width=318.0)
    user = drive(shown)
    user.drag("r.bar", 60)
    assert shown.low == pytest.approx(40, abs=0.5)
    assert shown.high - shown.low == pytest.approx(40)
    user.drag("r.bar", 1000)
    assert (shown.low, shown.high) == pytest.approx((60, 100))
    user.drag("r.bar", -1000)
    assert (shown.low, shown.high) == pytest.approx((0, 40))


def test_range_slider_whole_numbers_and_no_range(drive: Callable[..., Any]) -> None:
    shown = Range(0, 0, (0, 12), whole=True, form="g")
    user = drive(shown)
    user.drag("r.high", 150)
    assert shown.high == int(shown.high) > 0 and shown.low == 0
    shown.limits = (3, 3)
    user.frames()
    assert "r.low" not in marks.rectangles


def test_range_slider_out_of_limits_is_drawn(drive: Callable[..., Any]) -> None:
    shown = Range(-50.0, 500.0, (0.0, 100.0))
    user = drive(shown)
    left, _, right, _ = marks.rectangles["r"]
    assert marks.rectangles["r.low"][0] >= left and marks.rectangles["r.high"][2] <= right
    user.frames()
    assert (shown.low, shown.high) == (-50, 500), "only the user changes it"


def test_legend(drive: Callable[..., Any]) -> None:
    state: dict[str, Any] = {"range": (10.0, 90.0), "auto": 0}

    def body() -> None:
        new = legend("l", GREY, state["range"], (0.0, 100.0), automatic=False, marker=50.0)
        if new == "auto":
            state["auto"] += 1
        elif new is not None:
            state["range"] = new

    user = drive(body)
    left, top, right, bottom = (int(v) for v in marks.rectangles["l.palette"])
    line = user.window.picture()[(top + bottom) // 2, left + 1 : right - 1].astype(int)
    width = right - left
    quarter, three = line[width // 4].mean(), line[3 * width // 4].mean()
    assert quarter == pytest.approx(64, abs=4) and three == pytest.approx(191, abs=4)
    assert line[width // 2 - 3 : width // 2 + 3].max() == 255, "a tick at the marker"
    user.click("l.auto")
    assert state["auto"] == 1
    user.drag("l.range.low", 60)
    assert state["range"][0] > 15 and state["range"][1] == 90


@dataclass
class Declared:
    name: str
    kind: str
    label: str = ""
    help: str = "what it does"
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 0.25

    def __post_init__(self) -> None:
        self.label = self.label or self.name


OPTIONS = (
    Declared("tree", "choice", choices=("sah", "lbvh", 64)),
    Declared("cutoff", "number"),
    Declared("rounds", "number", high=60, step=1),
    Declared("count", "flag"),
    Declared("mask", "bits", high=255),
)


def test_options(drive: Callable[..., Any]) -> None:
    values = {"tree": "sah", "cutoff": 0.5, "rounds": 30, "count": False, "mask": 0b101}
    changes: list[tuple[str, Any]] = []

    def body() -> None:
        changed = draw_options(
            "o", OPTIONS, lambda o: values[o.name], {"tree": Beside("-31% nodes")}
        )
        if changed is not None:
            values[changed[0].name] = changed[1]
            changes.append((changed[0].name, changed[1]))

    user = drive(body)
    assert changes == []
    user.click("o.tree")
    user.click("o.tree.64")
    assert changes == [("tree", 64)]
    user.click("o.count")
    assert values["count"] is True
    user.click("o.mask.7")
    user.click("o.mask.0")
    assert values["mask"] == 0b10000100
    user.drag("o.cutoff", 60)
    assert values["cutoff"] in (0.75, 1.0), "in the declared steps"
    user.drag("o.rounds", 500)
    assert values["rounds"] == 60 and isinstance(values["rounds"], int)
    count = len(changes)
    user.click("o.tree")
    user.click("o.tree.64")
    assert len(changes) == count, "the value it has is no change"


def test_option_of_an_unknown_kind_is_said(drive: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="'odd' is a colour, which has no widget"):
        drive(lambda: draw_options("o", (Declared("odd", "colour"),), lambda o: 0))


def test_message_box(drive: Callable[..., Any]) -> None:
    pressed: list[bool] = []
    text = "line one of it, 100%s\n" + "x" * 400
    user = drive(lambda: pressed.append(message_box("m", "shader 5%d", text)))
    left, top, right, bottom = marks.rectangles["m"]
    assert right <= 480 and bottom <= 320 and bottom - top > 100, "long words are wrapped"
    user.click("m.button")
    assert pressed.count(True) == 1
    user.click("m.copy")
    assert imgui.get_clipboard_text() == f"shader 5%d\n{text}"
    drive(lambda: message_box("m", "title", "text", button=""))
    assert "m.button" not in marks.rectangles


def test_transport_arithmetic() -> None:
    state = Transport(duration=2.0, time=1.9, playing=True, speed=0.5, step=0.25)
    assert state.advanced(0.4).time == pytest.approx(0.1), "goes round"
    assert state.advanced(0.1).time == pytest.approx(1.95)
    assert Transport(2.0, 0.5).advanced(1.0).time == 0.5, "paused"
    assert state.stepped(1) == Transport(2.0, pytest.approx(0.15), False, 0.5, 0.25)
    assert Transport(2.0, 0.1, step=0.25).stepped(-1).time == pytest.approx(1.85)
    assert state.scrubbed(9.0).time == 2.0 and state.scrubbed(-1.0).time == 0.0
    assert not state.scrubbed(1.0).playing
    still = Transport(0.0, 0.0, True)
    assert still.advanced(1.0).time == 0.0 and still.stepped(1).time == 0.0


def test_transport_widget(drive: Callable[..., Any]) -> None:
    state = [Transport(duration=2.0, time=0.5, step=0.25)]

    def body() -> None:
        state[0] = draw_transport("t", state[0])

    user = drive(body)
    user.click("t.play")
    assert state[0].playing
    user.click("t.play")
    assert not state[0].playing
    user.click("t.on")
    assert state[0].time == pytest.approx(0.75)
    user.click("t.back")
    user.click("t.back")
    assert state[0].time == pytest.approx(0.25)
    user.click("t.play")
    user.drag("t.time", 40)
    assert state[0].time > 1.0 and not state[0].playing
    user.click("t.speed")
    user.click("t.speed.0.25")
    assert state[0].speed == 0.25


def test_nice_ceiling() -> None:
    for value, expected in ((0.9, 1), (1.0, 1), (1.01, 1.5), (4.2, 5), (71, 100), (0.021, 0.03)):
        assert nice_ceiling(value) == pytest.approx(expected)
    assert nice_ceiling(0.0) == nice_ceiling(float("inf")) == nice_ceiling(float("nan")) == 1.0


def test_series_have_colours_of_their_own(contrast: Callable[..., float]) -> None:
    assert series_colour("some pass") == series_colour("some pass")
    assert len({series_colour(f"pass {i}") for i in range(len(PALETTE))}) == len(PALETTE)
    assert all(contrast(colour, theme.PANEL) > 4.5 for colour in PALETTE)


def test_history_stacks(drive: Callable[..., Any]) -> None:
    """Areas are as high as their values: 2 below 3, of an axis that ends at 7."""
    series = {"history low": [2.0] * 50, "history high": [3.0] * 50}
    user = drive(lambda: draw_history("h", series, frames=50, budgets={"limit": 6.0}))
    picture = user.window.picture().astype(int)
    left, top, right, bottom = (int(v) for v in marks.rectangles["h"])
    column = picture[top:bottom, (left + right) // 2 + 20]
    heights = []
    for name in series:
        colour = 255 * np.array(series_colour(name))
        heights.append(int((np.abs(column - colour).max(1) < 12).sum()))
    assert heights[0] > 20 and heights[1] / heights[0] == pytest.approx(1.5, rel=0.15)
    area = np.flatnonzero(
        np.abs(column - 255 * np.array(series_colour("history high"))).max(1) < 12
    )
    above = column[: area.min() - 1]
    line = np.flatnonzero(above[:, 0] - above[:, 2] > 30)
    assert 1 <= len(line) <= 3, "the budget is a yellow line"
    # At 6, as far above the areas' 5 as one unit of their 5 is high.
    assert area.min() - line.mean() == pytest.approx(sum(heights) / 5, abs=2)


def test_labels_of_lines_that_are_close_stand_side_by_side() -> None:
    lines = {"top": 9.0, "b": 2.0, "a": 1.5, "c": 2.5}
    widths = {"top": 30.0, "a": 10.0, "b": 20.0, "c": 40.0}
    offsets = label_offsets(lines, widths, 1.0)
    assert offsets == {"top": 0, "a": 0, "b": 10 + LABEL_GAP, "c": 30 + 2 * LABEL_GAP}
    assert not any(label_offsets(lines, widths, 0.4).values())


def test_history_takes_what_there_is(drive: Callable[..., Any]) -> None:
    drive(lambda: draw_history("h", {}))
    drive(lambda: draw_history("h", {"a": [], "b": [float("nan")], "c": [1.0] * 999}))
    drive(lambda: draw_history("h", {"a": [0.0]}, size=(100.0, 60.0)))


def test_spans(drive: Callable[..., Any]) -> None:
    spans = [
        Span("raster", 0.0, 1.0, "draw"),
        Span("trace", 1.0, 4.0, "compute", "two dispatches"),
        Span("nothing", 4.0, 4.0, "compute"),
    ]
    hovered: list[Span | None] = []
    user = drive(lambda: hovered.append(draw_spans("s", spans)))
    raster, trace = marks.rectangles["s.raster"], marks.rectangles["s.trace"]
    assert trace[0] == pytest.approx(raster[2]) and trace[1] > raster[1]
    assert (trace[2] - trace[0]) / (raster[2] - raster[0]) == pytest.approx(3, rel=0.01)
    nothing = marks.rectangles["s.nothing"]
    assert nothing[2] - nothing[0] == pytest.approx(1), "still to be seen"
    user.move("s.trace")
    assert hovered[-1] is spans[1]
    user.move("s.raster")
    assert hovered[-1] is spans[0]
    drive(lambda: draw_spans("s", []))
