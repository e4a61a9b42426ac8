"""What each ray type cost, how that is spread over its rays, and what objects cost to build."""

from typing import TYPE_CHECKING, Any

from imgui_bundle import imgui

from engine.view.marks import mark
from engine.view.panels.table import Table
from treeline.view.counts_to_see import counts_to_see
from treeline.view.ray_rows import (
    BUILD_COLUMNS,
    PER,
    build_rows,
    ray_columns,
    ray_rows,
    spread_columns,
    spread_rows,
)

if TYPE_CHECKING:
    from passes.frame_stats import FrameStats
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState

REFRESH_S = 0.25


class RaysPanel:
    """`per` is what counts are divided by. A ray type has a row because the frame has it."""

    title = "Rays"

    def __init__(self) -> None:
        self.per = PER[0]
        self.tables = {per: Table(f"rays.{per}", ray_columns(per), filterable=False) for per in PER}
        self.spreads = Table("rays.spreads", spread_columns(), filterable=False)
        self.builds = Table("rays.builds", BUILD_COLUMNS)
        self._seen: tuple[Any, ...] = ()
        self._refreshed = float("-inf")
        self._timed: FrameStats | None = None  # the newest in the tables
        self._counted: FrameStats | None = None  # whose spread is shown

    def stale(self, session: "ViewSession", state: "ViewState") -> bool:
        if self._wanted(session) != self._seen:
            return True
        moves = session.frame is not None and session.frame.moving is not None
        newer = moves or session.timed is not self._timed
        return newer and imgui.get_time() - self._refreshed >= REFRESH_S

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
        if len(self.spreads):
            if imgui.collapsing_header("Nodes a ray", imgui.TreeNodeFlags_.default_open):
                self.spreads.draw((0.0, (len(self.spreads) + 2.2) * lines))
            mark("rays.spreads.header")
        if imgui.collapsing_header("Build and update", imgui.TreeNodeFlags_.default_open):
            self.builds.draw((0.0, max(6 * lines, imgui.get_content_region_avail().y)))
        mark("rays.builds.header")

    def _wanted(self, session: "ViewSession") -> tuple[Any, ...]:
        """What the tables are to be of, but for newer frames of the same."""
        drawing = session.drawing
        known = drawing is not None and len(drawing.recent) > 0
        structure = None if session.active is None else session.active.structure
        return (drawing, counts_to_see(session), known, structure, self.per)

    def _refresh(self, session: "ViewSession") -> None:
        """Tables follow the frames a few times a second, and at once when the view is another."""
        seen = self._wanted(session)
        now = imgui.get_time()
        if seen == self._seen and now - self._refreshed < REFRESH_S:
            return
        drawing, counted, structure = session.drawing, session.counted, seen[3]
        recent = () if drawing is None else drawing.recent
        new_structure = not self._seen or self._seen[3] is not structure
        self._seen, self._refreshed, self._timed = seen, now, session.timed
        width, height = (0, 0) if session.active is None else session.active.size
        rows = ray_rows(recent, counted, self.per, width * height)
        self.tables[self.per].set_rows(rows)
        if counted is not self._counted:  # a table of one counted frame
            self._counted = counted
            self.spreads.set_rows(spread_rows(counted))
        moving = None if session.frame is None else session.frame.moving
        if structure is not None and (new_structure or moving is not None):
            decisions = () if moving is None else moving.decisions
            self.builds.set_rows(build_rows(structure.bvh, decisions))
