"""An offscreen window driven as a person would: by items' names, never by pixels."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.view import marks, theme
from engine.view.marks import mark
from engine.view.window import Window


class Driver:
    """Sends a window events and draws the frames in which they are seen."""

    def __init__(self, window: Window, draw: Callable[[], None]) -> None:
        self.window = window
        self.draw = draw
        self.frames(3)  # imgui lays tables and windows out by what they held before

    def frames(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.window.draw_once(self.draw)

    def _pointer(self, kind: str, x: float, y: float, button: int = 0) -> None:
        held = () if kind == "pointer_up" else (button,) if button else ()
        self.window.send(kind, x=x, y=y, button=button, buttons=held)
        self.frames()

    def move(self, name: str) -> None:
        self._pointer("pointer_move", *marks.centre(name))
        self.frames()

    def click(self, name: str, button: int = 1) -> None:
        x, y = marks.centre(name)
        self._pointer("pointer_move", x, y)
        self._pointer("pointer_down", x, y, button)
        self._pointer("pointer_up", x, y, button)
        self.frames()

    def drag(self, name: str, dx: float, dy: float = 0.0, button: int = 1) -> None:
        x, y = marks.centre(name)
        self._pointer("pointer_move", x, y)
        self._pointer("pointer_down", x, y, button)
        for part in (0.5, 1.0):
            self._pointer("pointer_move", x + part * dx, y + part * dy, 0)
        self._pointer("pointer_up", x + dx, y + dy, button)
        self.frames()

    def type(self, text: str) -> None:
        for character in text:
            self.window.send("char", data=character)
        self.frames(2)

    def press(self, key: str, modifiers: tuple[str, ...] = ()) -> None:
        for name in (*modifiers, key):
            self.window.send("key_down", key=name, modifiers=modifiers)
            self.frames()
        for name in (key, *modifiers):
            self.window.send("key_up", key=name, modifiers=())
            self.frames()


def luminance(colour: theme.Rgb) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.fixture
def contrast() -> Callable[..., float]:
    """Contrast ratio of two colours (WCAG 2.2), 1 to 21; small text wants 4.5."""

    def ratio(a: theme.Rgb, b: theme.Rgb) -> float:
        light, dark = sorted((luminance(a), luminance(b)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    return ratio


@pytest.fixture
def open_window(device: Any) -> Iterator[Callable[..., Window]]:
    """Opens offscreen windows that the test's end closes."""
    opened: list[Window] = []

    def make(size: tuple[int, int] = (480, 320), **more: Any) -> Window:
        opened.append(Window(device, size, "test", offscreen=True, **more))
        return opened[-1]

    yield make
    for window in opened:
        window.close()


@pytest.fixture
def drive(open_window: Callable[..., Window]) -> Callable[..., Driver]:
    """Opens a window whose whole area one imgui window fills; `body` draws inside of it."""
    from imgui_bundle import imgui

    def make(body: Callable[[], Any], size: tuple[int, int] = (480, 320), **more: Any) -> Driver:
        def draw() -> None:
            imgui.set_next_window_pos(imgui.ImVec2(0, 0))
            imgui.set_next_window_size(imgui.ImVec2(*size))
            imgui.begin("test", None, imgui.WindowFlags_.no_decoration)
            body()
            imgui.end()

        return Driver(open_window(size, **more), draw)

    return make


class Demo:
    """A button, a slider and a text field, with what became of them."""

    clicks = 0
    value = 0.25
    text = ""

    def __call__(self) -> None:
        from imgui_bundle import imgui

        if imgui.button("press"):
            self.clicks += 1
        mark("press")
        _, self.value = imgui.slider_float("value", self.value, 0.0, 1.0)
        mark("value")
        _, self.text = imgui.input_text("text", self.text)
        mark("text")


@pytest.fixture
def make_demo() -> Callable[[], Demo]:
    """make_demo() -> Demo"""
    return Demo
