"""Pinning, switching and resetting above the options, and what their changes have done."""

from typing import TYPE_CHECKING

from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark
from passes.option_list import ViewSettings
from treeline.view.baseline import Baseline, Comparison, Effect, difference

if TYPE_CHECKING:
    from passes.frame_stats import FrameStats
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState

REFRESH_S = 0.25
LINES = 6.0  # of text, for what has changed


class BaselineHead:
    """`start` are the settings that reset goes back to: those of the first draw. `comparison` is
    what is shown of the changes; `each_pass`: of every pass of the frame, too."""

    def __init__(self) -> None:
        self.start: ViewSettings | None = None
        self.comparison = Comparison("")
        self.each_pass = False
        self._compared: tuple[object, ...] = ()
        self._refreshed = float("-inf")
        self._timed: FrameStats | None = None  # the newest that was compared

    def stale(self, session: "ViewSession") -> bool:
        if session.baseline is None or session.timed is self._timed:
            return False
        if session.moving and self.comparison.problem:
            return False  # of a view that moves there are no effects
        return imgui.get_time() - self._refreshed >= REFRESH_S

    def draw(self, session: "ViewSession", state: "ViewState") -> None:
        """Pin, swap, reset; then what has changed and what came of it. Pin and swap are commands:
        the picture keeps its counts with them."""
        if self.start is None:
            self.start = session.settings
        baseline = session.baseline
        for command, label, off in (
            ("pin", "Pin as A", session.timed is None),
            ("swap", "Swap A and B", baseline is None),
        ):
            imgui.begin_disabled(off)
            if imgui.button(label):
                state.asked.append(command)
            mark(f"controls.{command}")
            imgui.end_disabled()
            imgui.same_line()
        imgui.begin_disabled(baseline is None)
        if imgui.button("Unpin"):
            session.unpin()
        mark("controls.unpin")
        imgui.end_disabled()
        imgui.same_line()
        imgui.begin_disabled(session.settings == self.start)
        if imgui.button("Reset") and self.start is not None:
            session.change(self.start)
        mark("controls.reset")
        imgui.end_disabled()
        imgui.set_item_tooltip("All options as they were at the start")
        imgui.same_line()
        imgui.begin_disabled(baseline is None)
        _, self.each_pass = imgui.checkbox("each pass", self.each_pass)
        mark("controls.every_pass")
        imgui.end_disabled()
        if baseline is None:
            imgui.text_disabled("Pin a baseline to see what a change does.")
            return
        # As high whatever it says: options must not move away below the mouse.
        height = LINES * imgui.get_text_line_height_with_spacing()
        if imgui.begin_child("##effects", imgui.ImVec2(0.0, height)):
            self._draw_effects(session, baseline)
        imgui.end_child()

    def _draw_effects(self, session: "ViewSession", baseline: Baseline) -> None:
        names = difference(baseline, session.settings) or "nothing is changed"
        imgui.text_wrapped(f"{session.label} against {baseline.label}: {names}")
        self._refresh(session, baseline)
        if self.comparison.problem:
            imgui.text_disabled(self.comparison.problem)
        passes = () if session.timed is None else tuple(session.timed.passes)
        effects = self.comparison.effects
        draw_effects([effect for effect in effects if effect.subject not in passes])
        if self.each_pass:
            draw_effects([effect for effect in effects if effect.subject in passes])

    def _refresh(self, session: "ViewSession", baseline: Baseline) -> None:
        now = imgui.get_time()
        compared = (baseline, session.drawing, session.counted)
        same = len(self._compared) == len(compared) and all(
            one is other for one, other in zip(compared, self._compared, strict=True)
        )
        if not same or now - self._refreshed >= REFRESH_S:
            self._compared, self._refreshed = compared, now
            self._timed = session.timed
            self.comparison = session.effects()


def draw_effects(effects: list[Effect]) -> None:
    """A line each; grey where nothing has changed beyond noise."""
    for effect in effects:
        noise = all(change.noise is not False or not change.share for change in effect.changes)
        colour = theme.DIM if noise else theme.TEXT
        imgui.push_style_color(imgui.Col_.text, theme.opaque(colour))
        imgui.text_wrapped(effect.text)
        imgui.pop_style_color()
        mark(f"controls.effect.{effect.subject}")
