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

TAB_SPACE = 1.0  # between tabs, logical pixels
LEAST_PADDING, MOST_PADDING = 1.0, 6.0


class PanelTabs:
    """`wanted` is the title of the panel to bring to front, until it is there; then `settings` keep
    which one is open."""

    def __init__(self, panels: Sequence[Panel], settings: Settings) -> None:
        self.panels = panels
        self.settings = settings
        self.wanted: str | None = settings["panel"]
        self.quiet = QuietWindow(self._stale)
        self._looked_at: tuple[ViewSession, ViewState] | None = None

    def _stale(self) -> bool:
        """Of the panel that is open."""
        if self._looked_at is None:
            return True
        opened = self.settings["panel"]
        return any(p.stale(*self._looked_at) for p in self.panels if p.title == opened)

    def draw(
        self, region: Region, session: "ViewSession", state: "ViewState", version: tuple[Any, ...]
    ) -> None:
        """`version` is of what panels show beside the session's measurements and the state."""
        self._looked_at = (session, state)
        shown = (self.wanted, *version, *shown_by_panels(session, state))
        corner, size = (region.x, region.y), (region.width, region.height)
        with self.quiet.window(
            lambda: begin_region("##panels", region), corner, size, shown
        ) as build:
            if build:
                self._draw_tabs(session, state)
            imgui.end()

    def _padding(self) -> float:
        """Beside a tab's name: as much as all of them have room for, so that names are whole in a
        small window."""
        names = sum(imgui.calc_text_size(panel.title).x for panel in self.panels)
        # imgui adds a pixel a tab.
        room = imgui.get_content_region_avail().x - names - (TAB_SPACE + 1) * len(self.panels)
        return min(max(0.5 * room / len(self.panels), LEAST_PADDING), MOST_PADDING)

    def _draw_tabs(self, session: "ViewSession", state: "ViewState") -> None:
        padding = self._padding()
        _push_style(padding)
        bar = imgui.begin_tab_bar("##tabs", imgui.TabBarFlags_.fitting_policy_shrink)
        _pop_style()
        if not bar:
            return
        for panel in self.panels:
            wanted = self.wanted == panel.title
            flags = imgui.TabItemFlags_.set_selected if wanted else 0
            _push_style(padding)
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
        session.timed is None,
        session.counted is None,
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


def _push_style(padding: float) -> None:
    imgui.push_style_var(imgui.StyleVar_.item_inner_spacing, (TAB_SPACE, 4.0))
    imgui.push_style_var(imgui.StyleVar_.frame_padding, (padding, 3.0))


def _pop_style() -> None:
    imgui.pop_style_var(2)
