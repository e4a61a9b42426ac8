"""The panels, one tab each, of which one is open."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from imgui_bundle import imgui

from engine.view.marks import mark
from engine.view.quiet_window import QuietWindow
from engine.view.settings import Settings
from treeline.view.layout import Region, begin_region
from treeline.view.panel import Panel

if TYPE_CHECKING:
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState


class PanelTabs:
    """`wanted` is the title of the panel to bring to front, until it is there; then `settings` keep
    which one is open."""

    def __init__(self, panels: Sequence[Panel], settings: Settings) -> None:
        self.panels = panels
        self.settings = settings
        self.wanted: str | None = settings["panel"]
        self.quiet = QuietWindow()

    def draw(
        self, region: Region, session: "ViewSession", state: "ViewState", version: tuple[Any, ...]
    ) -> None:
        """`version` is of what panels show beside the session's measurements and the state."""
        if state.unfinished:
            state.unfinished = False
            self.quiet.refresh()

        shown = (self.wanted, *version, *shown_by_panels(session, state))
        corner, size = (region.x, region.y), (region.width, region.height)
        with self.quiet.window(
            lambda: begin_region("##panels", region), corner, size, shown
        ) as build:
            if build:
                self._draw_tabs(session, state)
            imgui.end()

    def _draw_tabs(self, session: "ViewSession", state: "ViewState") -> None:
        _push_style()
        bar = imgui.begin_tab_bar("##tabs", imgui.TabBarFlags_.fitting_policy_shrink)
        _pop_style()
        if not bar:
            return
        for panel in self.panels:
            wanted = self.wanted == panel.title
            flags = imgui.TabItemFlags_.set_selected if wanted else 0
            _push_style()
            opened, _ = imgui.begin_tab_item(panel.title, None, flags)
            _pop_style()
            mark(f"tab.{panel.title}")
            if opened:
                if wanted:
                    self.wanted = None
                if self.wanted is None:
                    self.settings["panel"] = panel.title
                imgui.begin_child(f"##{panel.title}")
                panel.draw(session, state)
                imgui.end_child()
                imgui.end_tab_item()
        imgui.end_tab_bar()


def shown_by_panels(session: "ViewSession", state: "ViewState") -> tuple[Any, ...]:
    """What panels show that is to be seen at once: all that a hand changes, and the numbers of a
    view at rest as soon as they are known. Those that follow each other from frame to frame, the
    times of an accumulating picture and everything while the camera moves, are not in it."""
    drawing, boxes, seen = session.drawing, state.boxes, state.seen
    at_rest: tuple[Any, ...] = ()
    if not session.moving and drawing is not None:
        at_rest = (
            drawing.counted,
            drawing.first,
            session.ready,
            session.idle,
            None if session.continuous else drawing.timed,
            seen.range,
            seen.maximum,
        )
    return (
        session.settings,
        session.active,
        drawing,
        session.baseline,
        session.label,
        session.error,
        session.busy,
        session.size,
        state.shown,
        state.palette,
        state.heat_range,
        state.difference,
        state.picked,
        state.selected,
        state.hidden,
        state.ray_index,
        state.ray_step,
        boxes.shown,
        boxes.low,
        boxes.high,
        boxes.colour_by,
        seen.output,
        seen.value,
        seen.has_baseline,
        *at_rest,
    )


def _push_style() -> None:
    """Tabs close together, so that all of them are seen in a small window."""
    imgui.push_style_var(imgui.StyleVar_.item_inner_spacing, (2.0, 4.0))
    imgui.push_style_var(imgui.StyleVar_.frame_padding, (4.0, 3.0))


def _pop_style() -> None:
    imgui.pop_style_var(2)
