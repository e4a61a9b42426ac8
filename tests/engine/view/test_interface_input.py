"""What a person does to the window arrives in the interface."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui

from engine.view import marks
from engine.view.interface_input import KEYS, imgui_key
from engine.view.window import Window


def test_button_slider_and_text(drive: Callable[..., Any], make_demo: Callable[[], Any]) -> None:
    demo = make_demo()
    user = drive(demo)
    user.click("press")
    assert demo.clicks == 1
    user.drag("value", 100)
    assert demo.value > 0.6
    user.click("text")
    user.type("añb 1")
    user.press("Backspace")
    assert demo.text == "añb "
    with pytest.raises(KeyError, match="'gone' is not drawn; marks: press, text, value"):
        marks.centre("gone")


def test_every_key_arrives(open_window: Callable[..., Window]) -> None:
    window = open_window((64, 64))
    seen: list[bool] = []
    for name, key in KEYS.items():
        shown = name.upper() if len(name) == 1 else name  # as a window says it with Shift held
        window.send("key_down", key=shown)
        window.draw_once(lambda key=key: seen.append(imgui.is_key_down(key)))
        window.send("key_up", key=shown)
        window.draw_once(lambda key=key: seen.append(not imgui.is_key_down(key)))
    assert all(seen) and len(seen) == 2 * len(KEYS)
    assert imgui_key("Numpad7") == imgui.Key.keypad7 != imgui_key("7")
    window.send("key_down", key="no such key")
    window.draw_once(lambda: None)


def test_mouse_buttons_wheel_and_modifiers(open_window: Callable[..., Window]) -> None:
    window = open_window((64, 64))
    seen: dict[str, Any] = {}

    def look() -> None:
        io = imgui.get_io()
        seen.update(
            down=[button for button in range(3) if imgui.is_mouse_down(button)],
            wheel=io.mouse_wheel,
            shift=io.key_shift,
            mouse=(io.mouse_pos.x, io.mouse_pos.y),
        )

    for button, expected in ((1, 0), (2, 1), (3, 2)):  # left, right, middle
        window.send("pointer_down", x=10, y=20, button=button)
        window.draw_once(look)
        assert seen["mouse"] == (10, 20)
        window.draw_once(look)  # the button waits for a frame in which the mouse was there
        assert seen["down"] == [expected]
        window.send("pointer_up", x=10, y=20, button=button)
        window.draw_once(look)
        assert seen["down"] == []
    window.send("wheel", x=10, y=20, dy=-100.0)
    window.draw_once(look)
    assert seen["wheel"] == 1.0, "away from the user is up"
    window.send("key_down", key="Shift")
    window.draw_once(look)
    assert seen["shift"]
    window.send("pointer_leave")
    window.draw_once(look)
    assert seen["mouse"][0] < -1e9


def test_same_events_give_the_same_picture(
    drive: Callable[..., Any], make_demo: Callable[[], Any]
) -> None:
    pictures = []
    for _ in range(2):
        user = drive(make_demo())
        user.click("text")
        user.type("abc")
        user.drag("value", 40)
        pictures.append(user.window.picture())
    assert np.array_equal(*pictures)
    assert len(np.unique(pictures[0].reshape(-1, 3), axis=0)) > 20
    before = pictures[0]
    user.click("press")
    assert not np.array_equal(user.window.picture(), before)
