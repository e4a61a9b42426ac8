"""Where the frame's time goes: a live history, the time line of one frame, a table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark
from engine.view.panels.history import draw_history
from engine.view.panels.spans import Span, draw_spans
from engine.view.panels.table import Column, Table
from passes.frame_stats import FrameStats
from treeline.budgets import Budget, belongs, median_spent, plot_lines
from treeline.view.pass_history import PassHistory, pass_rows

if TYPE_CHECKING:
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState

REFRESH_S = 0.25  # between two looks at all recent frames: numbers that change faster are not read
FRAMES = 240
FEW = 16  # of a view: each one tells
FEWEST = 24  # that the history is as wide as: on a CPU driver frames are few
TABLE_LINES = 12.0  # that the table has at least
HISTORY_LINES = 9.0  # height of the history in lines of text


class PassesPanel:
    """Times come from timed frames only."""

    title = "Passes"

    def __init__(self) -> None:
        self.history = PassHistory(FRAMES)
        self.table = Table(
            "passes",
            (
                Column("pass", text=True),
                Column("median", "ms", ".3f"),
                Column("mean", "ms", ".3f"),
                Column("p95", "ms", ".3f", tooltip="of the recent frames of this view"),
                Column("last", "ms", ".3f"),
                Column("share", "%", ".1f", tooltip="of the frame's median"),
            ),
            filterable=False,
        )
        self._frames: tuple[Any, int] = (None, 0)
        self._refreshed = float("-inf")

    def stale(self, session: "ViewSession", state: "ViewState") -> bool:
        """It moves with every frame."""
        return True

    def draw(self, session: "ViewSession", state: "ViewState") -> None:
        self.history.follow(session.history)
        imgui.text_wrapped(timing_text(session))
        imgui.text_disabled(host_text(session.timed, state.panel_ms))
        if session.timed is None:
            imgui.text_disabled(session.busy or "nothing is timed of this view yet")
            return
        if not np.isfinite(session.timed.frame_total_ms):
            imgui.text_disabled("the adapter has no timer for frames that nobody waits for")
        drawing = session.drawing
        recent = () if drawing is None else drawing.recent
        line = imgui.get_text_line_height()
        frames = min(max(len(session.history), FEWEST), FRAMES)
        chosen = choose_budget(state, recent)
        draw_history(
            "passes.history",
            series_of(chosen, self.history.series),
            budgets=plot_lines(state.budgets if chosen is None else (chosen,)),
            frames=frames,
            size=(0.0, HISTORY_LINES * line),
        )
        imgui.separator_text("One frame")
        draw_spans("passes.frame", frame_spans(session.timed))
        imgui.separator_text(f"{len(recent)} frames of this view")
        self._refresh(recent)
        height = max(TABLE_LINES * line, imgui.get_content_region_avail().y)
        self.table.draw((0.0, height))

    def _refresh(self, recent: Any) -> None:
        """At once while there are few: the table and its title are of the same frames."""
        now = imgui.get_time()
        frames = (id(recent), len(recent))
        late = now - self._refreshed >= REFRESH_S
        if frames == self._frames and not late:
            return
        if frames[0] == self._frames[0] and frames[1] > FEW and not late:
            return
        self._frames, self._refreshed = frames, now
        self.table.set_rows(pass_rows(recent))


def timing_text(session: "ViewSession") -> str:
    """Whose times these are."""
    info = session.device.info
    if session.device.timing_source == "timestamp-query":
        return f"{info.adapter}: GPU timestamps"
    if info.is_cpu:
        return (
            f"{info.adapter}: CPU wall clock, each pass waited for; compare these times with each "
            "other, not with a GPU's"
        )
    return f"{info.adapter}: wall clock, each pass waited for"


def host_text(timed: FrameStats | None, panel_ms: float) -> str:
    """What the host spends beside the frame."""
    text = f"interface {panel_ms:.2f} ms"
    if timed is not None:
        text += f", frame's own host time {timed.cpu_ms:.2f} ms, waits {timed.forced_waits}"
    return text


def frame_spans(stats: FrameStats) -> list[Span]:
    """The passes of one frame where they ran; empty without times. Passes that took no time are
    left out."""
    spans = []
    for (name, took), begin in zip(stats.passes.items(), stats.begins, strict=False):
        if np.isfinite(took) and np.isfinite(begin) and took > 0:
            spans.append(Span(name, begin, begin + took))
    return spans


def choose_budget(state: "ViewState", recent: Sequence[FrameStats]) -> Budget | None:
    """One line for each budget, with what its part of the frame takes, coloured where that is over;
    a click shows the history of that part alone. The chosen budget; None: all passes are shown."""
    for budget in state.budgets:
        used = median_spent(budget, recent)
        chosen = state.budget == budget.name
        over = used is not None and used > budget.limit
        if over:
            imgui.push_style_color(imgui.Col_.text, imgui.ImVec4(*theme.opaque(theme.WARNING)))
        pressed, _ = imgui.selectable(budget_text(budget, used), chosen)
        if over:
            imgui.pop_style_color()
        mark(f"passes.budget.{budget.name}")
        if pressed and budget.unit == "ms":
            state.budget = None if chosen else budget.name
    return next((b for b in state.budgets if b.name == state.budget), None)


def budget_text(budget: Budget, used: float | None) -> str:
    if used is None:
        return f"{budget}: not measured"
    number = f"{used:.3f} ms" if budget.unit == "ms" else f"{used:,.0f} rays"
    return f"{budget}: {number}, {'OVER' if used > budget.limit else 'under'}"


def series_of(budget: Budget | None, series: Mapping[str, Any]) -> dict[str, Any]:
    """The passes that a budget is about; all where there is none."""
    return {
        name: times for name, times in series.items() if budget is None or belongs(budget, name)
    }
