"""What each object took of each ray type's work, what became of those that deform, and what hits
are shaded by."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from imgui_bundle import imgui

from bvh.layout import ROOT_POINTER
from engine.view.marks import mark
from engine.view.panels.table import Table
from passes.hit_table import hit_classes
from passes.rays import RAY_TYPES
from treeline.view.counts_to_see import counts_to_see
from treeline.view.object_rows import (
    HIT_COLUMNS,
    OBJECT_COLUMNS,
    UPDATE_COLUMNS,
    hit_rows,
    object_rows,
    update_rows,
)
from treeline.view.structure_tree import StructureTree
from treeline.view.structure_view import StructureView
from treeline.view.view_state import NodeRef, ViewState

if TYPE_CHECKING:
    from passes.frame_stats import FrameStats
    from treeline.view.session import ViewSession

REFRESH_S = 0.25
EVERY_TYPE = "all"


class ObjectsPanel:
    """`ray_type` is whose work is shown. A click selects the object's instance, or where it has
    several what they share: the root of its BLAS."""

    title = "Objects"

    def __init__(self, structure: StructureView | None = None) -> None:
        self.structure = structure or StructureView()
        self.ray_type = EVERY_TYPE
        self.objects = Table("objects", OBJECT_COLUMNS)
        self.updates = Table("updates", UPDATE_COLUMNS, filterable=False)
        self.hits = Table("hits", HIT_COLUMNS, filterable=False)
        self._placed: Any = None  # the scene that the hit table is of
        self._seen: tuple[Any, ...] = ()
        self._refreshed = float("-inf")
        self._timed: FrameStats | None = None  # the newest in the tables

    def stale(self, session: "ViewSession", state: ViewState) -> bool:
        if self._wanted(session) != self._seen:
            return True
        moves = session.frame is not None and session.frame.moving is not None
        newer = moves or session.timed is not self._timed
        return newer and imgui.get_time() - self._refreshed >= REFRESH_S

    def draw(self, session: "ViewSession", state: ViewState) -> None:
        tree = self.structure.follow(session, state)
        self._refresh(session)
        for index, name in enumerate((EVERY_TYPE, *(ray.name for ray in RAY_TYPES))):
            if index:
                imgui.same_line()
            if imgui.radio_button(name, self.ray_type == name):
                self.ray_type = name
            mark(f"objects.type.{name}")
        if not session.settings.frame.count:
            imgui.same_line()
            imgui.text_disabled("counters are off")
        lines = imgui.get_text_line_height_with_spacing()
        left = imgui.get_content_region_avail().y
        row = self.objects.draw((0.0, max(6 * lines, 0.6 * left)))
        if row is not None and tree is not None:
            state.selected = node_of(tree, str(self.objects.data[0][row]))
        if len(self.updates):
            imgui.text_disabled("Updates")
            row = self.updates.draw((0.0, (min(len(self.updates), 6) + 3) * lines))
            if row is not None and tree is not None:
                state.selected = node_of(tree, str(self.updates.data[0][row]))
        if imgui.collapsing_header("Hit table", imgui.TreeNodeFlags_.default_open):
            imgui.text_disabled(f"{session.settings.frame.hit_table} in this frame")
            self.hits.draw((0.0, max(6 * lines, imgui.get_content_region_avail().y)))
        mark("objects.hits.header")

    def _wanted(self, session: "ViewSession") -> tuple[Any, ...]:
        """What the tables are to be of, but for newer frames of the same."""
        drawing = session.drawing
        known = drawing is not None and len(drawing.recent) > 0
        return (drawing, counts_to_see(session), known, self.ray_type)

    def _refresh(self, session: "ViewSession") -> None:
        """Tables follow the frames a few times a second, and at once when the view is another."""
        seen = self._wanted(session)
        now = imgui.get_time()
        if seen == self._seen and now - self._refreshed < REFRESH_S:
            return
        drawing, counted = session.drawing, session.counted
        recent = () if drawing is None else drawing.recent
        self._seen, self._refreshed, self._timed = seen, now, session.timed
        wanted = None if self.ray_type == EVERY_TYPE else self.ray_type
        self.objects.set_rows(object_rows(recent, counted, wanted))
        frame = session.frame
        if frame is not None and frame.scene.prepared.scene is not self._placed:
            self._placed = frame.scene.prepared.scene
            self.hits.set_rows(hit_rows(hit_classes(frame.scene.prepared, RAY_TYPES)))
        records = () if frame is None else frame.updates(wait=False)
        self.updates.set_rows(update_rows(records, recent[-1].passes if recent else {}))


def node_of(tree: StructureTree, name: str) -> NodeRef | None:
    """The node that stands for the object of that name; None for the TLAS's row."""
    names: Sequence[str] = tree.bvh.blas_names
    # What shares its name with an earlier one has its number behind it (passes/update_stages.py).
    found = [i for i, blas in enumerate(names) if name in (blas, f"{blas} ({i})")]
    placed = [i for i, item in enumerate(tree.bvh.instances) if item.blas in found]
    if len(placed) == 1:
        return tree.instance_node(placed[0])
    return NodeRef(found[0], ROOT_POINTER) if found else None
