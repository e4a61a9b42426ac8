"""What each ray type cost, and what objects cost to build."""

from typing import TYPE_CHECKING, Any

from imgui_bundle import imgui

from engine.view.marks import mark
from engine.view.panels.table import Table
from treeline.view.ray_rows import (
    BUILD_COLUMNS,
    PER,
    build_rows,
    ray_columns,
    ray_rows,
)

if TYPE_CHECKING:
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState

REFRESH_S = 0.25


class RaysPanel:
    """`per` is what counts are divided by. A ray type has a row because the frame has it."""

    title = "Rays"

    def __init__(self) -> None:
        self.per = PER[0]
        self.tables = {per: Table(f"rays.{per}", ray_columns(per), filterable=False) for per in PER}
        self.builds = Table("rays.builds", BUILD_COLUMNS)
        self._seen: tuple[Any, ...] = ()
        self._refreshed = float("-inf")

    def draw(self, session: "ViewSession", state: "ViewState") -> None:
        self._refresh(session)
        for index, per in enumerate(PER):
            if index:
                imgui.same_line()
            if imgui.radio_button(f"per {per}", self.per == per):
                self.per = per
            mark(f"rays.per.{per}")
        if not session.settings.frame.count:
            imgui.same_line()
            imgui.text_disabled("counters are off")
        lines = imgui.get_text_line_height_with_spacing()
        table = self.tables[self.per]
        table.draw((0.0, (len(table) + 2.2) * lines))
        if imgui.collapsing_header("Build and update", imgui.TreeNodeFlags_.default_open):
            self.builds.draw((0.0, max(6 * lines, imgui.get_content_region_avail().y)))
        mark("rays.builds.header")

    def _refresh(self, session: "ViewSession") -> None:
        """Tables follow the frames a few times a second, and at once when the view is another."""
        drawing, counted = session.drawing, session.counted
        recent = () if drawing is None else drawing.recent
        structure = None if session.active is None else session.active.structure
        seen = (drawing, counted, len(recent) > 0, structure, self.per)
        now = imgui.get_time()
        if seen == self._seen and now - self._refreshed < REFRESH_S:
            return
        new_structure = not self._seen or self._seen[3] is not structure
        self._seen, self._refreshed = seen, now
        width, height = (0, 0) if session.active is None else session.active.size
        rows = ray_rows(recent, counted, self.per, width * height)
        self.tables[self.per].set_rows(rows)
        moving = None if session.frame is None else session.frame.moving
        if structure is not None and (new_structure or moving is not None):
            decisions = () if moving is None else moving.decisions
            self.builds.set_rows(build_rows(structure.bvh, decisions))
