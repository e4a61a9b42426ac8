"""Tables: sorting, filtering, CSV, and a million rows."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui

from engine.view import marks
from engine.view.panels.table import Column, Table

COLUMNS = (
    Column("name", text=True, tooltip="what it is called"),
    Column("triangles", format=",d"),
    Column("time", "ms", ".2f"),
)
ROWS = [
    ("wall", 1200, 0.5),
    ("Floor", 8, None),
    ("lamp, left", 99, 2.25),
    ("wall clock", 99, 0.125),
]


def table() -> Table:
    made = Table("t", COLUMNS)
    made.set_rows(ROWS)
    return made


def names(shown: Table) -> list[str]:
    return [shown.data[0][row] for row in shown.order]


def test_sorting() -> None:
    t = table()
    assert names(t) == ["wall", "Floor", "lamp, left", "wall clock"]
    t.sort_by(1)
    assert names(t) == ["Floor", "lamp, left", "wall clock", "wall"]
    t.sort_by(1, descending=True)
    assert names(t) == ["wall", "lamp, left", "wall clock", "Floor"], "ties in the data's order"
    t.sort_by(0)
    assert names(t) == ["Floor", "lamp, left", "wall", "wall clock"], "capitals do not matter"


@pytest.mark.parametrize("descending", [False, True])
def test_missing_values_come_last(descending: bool) -> None:
    t = table()
    t.sort_by(2, descending)
    shown = [t.data[2][row] for row in t.order]
    assert shown[-1] is None
    assert shown[:-1] == sorted(shown[:-1], reverse=descending)


def test_random_tables_sort_as_python_does(rng: np.random.Generator) -> None:
    for _ in range(20):
        n = int(rng.integers(0, 40))
        values = rng.integers(0, 6, n).tolist()
        t = Table("t", (Column("i", text=True), Column("v")))
        t.set_columns([[str(i) for i in range(n)], values])
        for descending in (False, True):
            t.sort_by(1, descending)
            expected = sorted(range(n), key=lambda i: values[i], reverse=descending)
            assert t.order.tolist() == expected


def test_data_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="t: 3 columns of one length"):
        table().set_columns([["a"], [1], [0.5, 0.25]])
    with pytest.raises(ValueError):
        table().set_columns([["a"], [1]])
    empty = table()
    empty.set_rows([])
    assert len(empty) == 0 and empty.csv() == "name,triangles,time [ms]\n"


def test_csv_has_the_rows_as_shown_and_all_digits() -> None:
    t = table()
    t.sort_by(2, descending=True)
    assert t.csv() == (
        'name,triangles,time [ms]\n"lamp, left",99,2.25\nwall,1200,0.5\n'
        "wall clock,99,0.125\nFloor,8,\n"
    )


def test_new_data_are_shown(drive: Callable[..., Any]) -> None:
    t = table()
    user = drive(t.draw)
    before = user.window.picture()
    t.set_rows([(name, triangles + 1, time) for name, triangles, time in ROWS])
    user.frames()
    assert not np.array_equal(user.window.picture(), before)
    t.set_rows(ROWS)
    user.frames()
    assert np.array_equal(user.window.picture(), before)


def test_selection_ends_with_its_row() -> None:
    t = table()
    t.select(3)
    t.set_rows(ROWS)
    assert t.selected == 3
    t.set_rows(ROWS[:2])
    assert t.selected is None


def test_clicks_sort_and_typing_filters(drive: Callable[..., Any]) -> None:
    t = table()
    clicked: list[int | None] = []
    user = drive(lambda: clicked.append(t.draw()))
    user.click("t.header.triangles")
    assert names(t)[0] == "wall", "numbers begin with the largest"
    user.click("t.header.triangles")
    assert names(t)[0] == "Floor"
    user.click("t.header.triangles")
    assert names(t) == [row[0] for row in ROWS], "the third click gives the data's order"
    user.click("t.header.name")
    assert names(t)[0] == "Floor"
    user.click("t.filter")
    user.type("WALL")
    assert names(t) == ["wall", "wall clock"]
    assert "t.row.1" in marks.rectangles and "t.row.2" not in marks.rectangles
    user.click("t.row.1")
    assert t.selected == 3 and clicked.count(3) == 1
    user.click("t.copy")
    assert imgui.get_clipboard_text() == t.csv() != ""
    user.click("t.filter")
    for _ in "WALL":
        user.press("Backspace")
    assert len(t.order) == 4


def test_numbers_stand_at_the_right(drive: Callable[..., Any]) -> None:
    """The last pixel column with text is the same for a short and a long number."""
    ends = []
    for number in (1, 111_111):
        t = Table("t", (Column("a", text=True), Column("a long header", format="d")), False)
        t.set_rows([("x", number)])
        user = drive(lambda t=t: t.draw())
        picture = user.window.picture().max(2).astype(int)
        left, top, right, bottom = (int(v) for v in marks.rectangles["t.row.0"])
        edge = int(marks.rectangles["t.header.a long header"][0])
        row = picture[top:bottom, edge:right]
        ends.append(int(np.flatnonzero((row > 150).any(0)).max()))
        assert left < edge
    assert abs(ends[0] - ends[1]) <= 1


def test_a_million_rows(drive: Callable[..., Any], rng: np.random.Generator) -> None:
    n = 1_000_000
    t = Table("t", COLUMNS)
    formatted = []
    times = Column("time", "ms", lambda value: formatted.append(value) or f"{value:.2f}")
    t.columns = (*COLUMNS[:2], times)
    values = rng.random(n)
    kinds = np.array(["stone", "wood", "glass"])[rng.integers(0, 3, n)]
    begun = time.thread_time()
    t.set_columns([kinds, rng.integers(0, 1 << 40, n), values])
    user = drive(t.draw)
    assert time.thread_time() - begun < 1.0
    assert len(formatted) < 100, "only rows on screen are formatted"
    begun = time.thread_time()
    user.frames(10)
    assert (time.thread_time() - begun) / 10 < 0.05
    t.sort_by(2)
    assert values[t.order[0]] == values.min()
    last = int(t.order[-1])
    t.select(last)
    user.frames(3)
    assert f"t.row.{n - 1}" in marks.rectangles, "selecting scrolls there"
