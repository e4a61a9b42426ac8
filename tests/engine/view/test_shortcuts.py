"""One table of keys: no two alike, found when pressed, and all of them in the help."""

from collections.abc import Callable
from typing import Any

import pytest
from imgui_bundle import imgui

from engine.view import marks
from engine.view.camera_control import AXIS_VIEWS, FLY_KEYS, TURNS
from engine.view.marks import mark
from engine.view.shortcuts import CAMERA_SHORTCUTS, Shortcut, Shortcuts, key_label

MORE = (
    Shortcut("help", "this help", "F1"),
    Shortcut("save", "save the picture", "s", ("Control",)),
    Shortcut("save as", "save under a name", "s", ("Control", "Shift")),
    Shortcut("play", "play and pause", " "),
)
TABLE = Shortcuts((*MORE, *CAMERA_SHORTCUTS))


def test_no_two_share_a_key() -> None:
    with pytest.raises(ValueError, match=r"'b' and 'a' share the key Ctrl\+S"):
        Shortcuts(
            [
                Shortcut("a", "", "s", ("Control",)),
                Shortcut("c", "", "s"),
                Shortcut("b", "", "s", ("Control",)),
            ]
        )
    with pytest.raises(ValueError, match="two shortcuts are named 'a'"):
        Shortcuts([Shortcut("a", "", "s"), Shortcut("a", "", "d")])
    with pytest.raises(ValueError, match="no key is named"):
        Shortcuts([Shortcut("a", "", "F99")])
    with pytest.raises(ValueError, match="no key is named"):
        Shortcuts([Shortcut("a", "", "s", ("Ctrl",))])
    with pytest.raises(ValueError, match="share the key W"):
        Shortcuts([*CAMERA_SHORTCUTS, Shortcut("wire", "", "w")])


def test_labels() -> None:
    assert key_label("s", ("Shift", "Control")) == "Ctrl+Shift+S"
    assert key_label("Numpad7") == "Num 7" and key_label(" ") == "Space"
    assert key_label("ArrowLeft") == "Left" and key_label("F1") == "F1"
    assert TABLE.hint("save") == "Ctrl+S"
    assert TABLE.hint("orbit") == "" and TABLE.hint("unknown") == ""


def test_the_camera_knows_its_shortcuts() -> None:
    actions = {entry.action for entry in CAMERA_SHORTCUTS if entry.key and not entry.held}
    assert actions == {*AXIS_VIEWS, *TURNS, "nearer", "farther"}
    assert {entry.key for entry in CAMERA_SHORTCUTS if entry.held} == set(FLY_KEYS)


def test_pressed(drive: Callable[..., Any]) -> None:
    seen: list[str] = []
    text = [""]

    def body() -> None:
        seen.extend(TABLE.pressed())
        _, text[0] = imgui.input_text("text", text[0])
        mark("text")

    user = drive(body)
    for keys, expected in (
        (("s", ("Control",)), ["save"]),
        (("S", ("Control", "Shift")), ["save as"]),
        (("s", ()), []),  # a flying key
        (("s", ("Alt",)), []),
        (("Numpad7", ()), ["view top"]),
        (("Numpad7", ("Control",)), ["view bottom"]),
        ((" ", ()), ["play"]),
        (("F1", ()), ["help"]),
    ):
        seen.clear()
        user.press(*keys)
        assert seen == expected, keys
    user.click("text")
    seen.clear()
    user.press("F1")
    assert seen == [], "not while text is typed"


def test_keys_repeat_only_where_they_say_so(drive: Callable[..., Any]) -> None:
    seen: list[str] = []
    user = drive(lambda: seen.extend(TABLE.pressed()))
    for key in ("F1", "Numpad4"):
        user.window.send("key_down", key=key)
        user.frames(60)
        user.window.send("key_up", key=key)
        user.frames()
    assert seen.count("help") == 1 and seen.count("turn left") > 3


@pytest.mark.parametrize("size", [(960, 540), (640, 360)])
def test_help_is_whole_and_closes(drive: Callable[..., Any], size: tuple[int, int]) -> None:
    shown = [True]

    def body() -> None:
        if imgui.button("open"):
            shown[0] = True
        mark("open")
        if shown[0]:
            shown[0] = TABLE.draw_help()

    user = drive(body, size)
    left, top, right, bottom = marks.rectangles["help"]
    assert left >= 0 and top >= 0 and right <= size[0] and bottom <= size[1]
    assert marks.rectangles["help.close"][3] < bottom
    user.click("help.close")
    assert not shown[0]
    user.click("open")
    assert shown[0], "the click that opens it does not close it"
    user.press("Escape")
    assert not shown[0]
    user.click("open")
    marks.rectangles["beside"] = (1, size[1] - 3, 3, size[1] - 1)
    user.click("beside")
    assert not shown[0]
