"""One line at the bottom: what draws, what it takes, what is wrong, the newest message."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark
from engine.view.quiet_window import QuietWindow
from treeline.view.layout import Region, begin_region

if TYPE_CHECKING:
    from engine.view.window import Window
    from treeline.view.session import ViewSession


def frame_text(session: "ViewSession") -> str:
    """The frame's size, its time with where it comes from, and its samples."""
    width, height = session.size
    text = f"{width}x{height}"
    timed = session.timed
    if timed is not None and isfinite(timed.frame_total_ms):
        source = "GPU" if timed.timing_source == "timestamp-query" else "CPU wall clock"
        text += f"  {timed.frame_total_ms:,.2f} ms {source}"
    if session.samples:
        text += f"  {session.samples} sample{'s' if session.samples > 1 else ''}"
    return text


def window_text(window: "Window") -> str:
    """The interface's own time, and how long input takes to the screen."""
    text = f"panels {window.mean_panel_ms:.1f} ms"
    if window.latency_ms:
        text += f"  input p95 {window.latency_ms.p95:.0f} ms"
    return text


class StatusBar:
    """The line with its window."""

    def __init__(self) -> None:
        self.quiet = QuietWindow()

    def draw(
        self,
        region: Region,
        session: "ViewSession",
        window: "Window",
        messages: Sequence[str],
        value: str,
    ) -> None:
        """`value` is what is under the cursor."""
        timed = session.timed
        newest = messages[-1] if messages else ""
        valid = timed is None or timed.valid
        shown = (session.error, session.busy, valid, session.size, session.idle, value, newest)
        corner, size = (region.x, region.y), (region.width, region.height)
        with self.quiet.window(
            lambda: begin_region("##status", region), corner, size, shown
        ) as build:
            if build:
                _draw_texts(session, window, newest, value)
            imgui.end()


def _draw_texts(session: "ViewSession", window: "Window", message: str, value: str) -> None:
    timed = session.timed
    if session.error is not None:
        _coloured(theme.ERROR, "failed")
    elif timed is not None and not timed.valid:
        _coloured(theme.ERROR, f"INVALID: {'; '.join(timed.failures)}")
    elif session.busy is not None:
        _coloured(theme.ACCENT_BRIGHT, session.busy)
    else:
        imgui.text_disabled(session.device.info.adapter)
    mark("status.state")
    for text in (frame_text(session), value, message):
        if text:
            imgui.same_line(0.0, 1.5 * imgui.get_font_size())
            imgui.text_unformatted(text)
    right = window_text(window)
    place = imgui.get_window_size().x - imgui.calc_text_size(right).x - imgui.get_font_size()
    imgui.same_line()
    if place > imgui.get_cursor_pos_x():
        imgui.set_cursor_pos_x(place)
        imgui.text_disabled(right)


def _coloured(colour: theme.Rgb, text: str) -> None:
    imgui.push_style_color(imgui.Col_.text, theme.opaque(colour))
    imgui.text_unformatted(text)
    imgui.pop_style_color()
