"""The structure as a tree, what a node's bytes say, and which boxes are drawn over the picture."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imgui_bundle import imgui

from engine.gpu.errors import UserError
from engine.view import theme
from engine.view.marks import mark
from engine.view.panels.range_slider import range_slider
from engine.view.panels.tree import LazyTree
from treeline.view.box_overlay import COLOUR_BY, OverlayStats, legend, shown_container
from treeline.view.node_fields import Lines, node_fields, node_text, raw_lines
from treeline.view.structure_actions import (
    focus_box,
    hide_selected,
    link_targets,
    reset,
    show_all,
)
from treeline.view.structure_tree import StructureTree
from treeline.view.structure_view import StructureRows, StructureView
from treeline.view.view_state import NodeRef, ViewState

if TYPE_CHECKING:
    from treeline.view.session import ViewSession

__all__ = ["StructurePanel", "focus_box", "hide_selected", "reset", "show_all"]

TREE_SHARE = 0.48  # of the height below the controls
LEGEND_LEVELS = 8  # colours begin again after as many


@dataclass(frozen=True, slots=True)
class Detail:
    """What a node's bytes say."""

    label: str
    fields: Lines
    words: list[str]
    targets: dict[str, NodeRef]  # by the names of fields that lead there


class StructurePanel:
    """`structure` is the window's. `overlay` are the statistics that the panel shows of the boxes
    that somebody else draws."""

    title = "Structure"

    def __init__(self, structure: StructureView | None = None) -> None:
        self.structure = structure or StructureView()
        self.overlay = OverlayStats()
        self.tree = LazyTree("structure", StructureRows(self.structure))
        self._drawn = ""  # of the overlay
        self._version = self._bytes_version = 0
        self._shown: NodeRef | None = None  # what is selected in the tree
        self._detail: Detail | None = None
        self._detail_of: Any = None  # node, and version of the bytes

    def stale(self, session: "ViewSession", state: ViewState) -> bool:
        return state.boxes.shown and str(self.overlay) != self._drawn

    def draw(self, session: "ViewSession", state: ViewState) -> None:
        tree = self.structure.follow(session, state)
        if tree is None:
            imgui.text_disabled("no structure yet")
            return
        self._follow_structure(state)
        self._draw_boxes(tree, state)
        self._draw_buttons(session, state)
        self._follow_selection(tree, state)
        height = imgui.get_content_region_avail().y
        if self.tree.draw((0.0, TREE_SHARE * height if state.selected else height)):
            state.selected = self._shown = self.tree.selected
        if state.selected is not None:
            self._draw_detail(tree, state)

    def _follow_structure(self, state: ViewState) -> None:
        view = self.structure
        if view.version != self._version:
            self.tree.reset(StructureRows(view))
            self._version, self._shown = view.version, None
        if view.bytes_version != self._bytes_version:
            self.tree.refresh()
            self._bytes_version = view.bytes_version

    def _follow_selection(self, tree: StructureTree, state: ViewState) -> None:
        """Opens the tree at a node that was selected elsewhere."""
        if state.selected != self._shown:
            self._shown = state.selected
            if state.selected is not None:
                self.tree.reveal(tree.path_to(state.selected))

    # -- boxes -----------------------------------------------------------------------------------

    def _draw_boxes(self, tree: StructureTree, state: ViewState) -> None:
        boxes = state.boxes
        _, boxes.shown = imgui.checkbox("Boxes", boxes.shown)
        mark("structure.boxes")
        imgui.same_line()
        imgui.set_next_item_width(6 * imgui.get_font_size())
        at = COLOUR_BY.index(boxes.colour_by)
        _, at = imgui.combo("##colour by", at, [f"by {name}" for name in COLOUR_BY])
        mark("structure.colour")
        boxes.colour_by = COLOUR_BY[at]
        imgui.same_line()
        imgui.text_disabled("levels")
        imgui.same_line()
        deepest = tree.header(shown_container(tree, state.selected).container).depth
        changed = range_slider(
            "structure.levels",
            float(min(boxes.low, deepest)),
            float(min(boxes.high, deepest)),
            0.0,
            float(deepest),
            whole=True,
            form=".0f",
        )
        if changed is not None:
            boxes.low, boxes.high, boxes.shown = round(changed[0]), round(changed[1]), True
        if boxes.shown:
            self._draw_legend(state, deepest)

    def _draw_legend(self, state: ViewState, deepest: int) -> None:
        for name, colour in legend(state.boxes, deepest)[:LEGEND_LEVELS]:
            imgui.text_colored(theme.opaque(colour), name.removeprefix("level "))
            imgui.same_line()
        self._drawn = str(self.overlay)
        imgui.text_disabled(self._drawn)
        imgui.set_item_tooltip(f"{self.overlay.host_ms:.2f} ms of the host's time")

    def _draw_buttons(self, session: "ViewSession", state: ViewState) -> None:
        imgui.begin_disabled(state.selected is None)
        if imgui.small_button("Hide (H)"):
            self._try(state, lambda: hide_selected(session, state))
        mark("structure.hide")
        imgui.end_disabled()
        imgui.same_line()
        imgui.begin_disabled(not state.hidden)
        if imgui.small_button("Show all (J)"):
            self._try(state, lambda: show_all(session, state))
        mark("structure.show")
        imgui.end_disabled()
        if state.hidden:
            imgui.same_line()
            count = len(state.hidden)
            text = f"{count} instance{'' if count == 1 else 's'} hidden"
            imgui.text_colored(theme.opaque(theme.WARNING), text)

    def _try(self, state: ViewState, action: object) -> None:
        assert callable(action)
        try:
            action()
        except UserError as error:
            state.messages.append(str(error))

    # -- the selected node -----------------------------------------------------------------------

    def _draw_detail(self, tree: StructureTree, state: ViewState) -> None:
        ref = state.selected
        assert ref is not None
        if self._detail is None or self._detail_of != (ref, self._bytes_version):
            self._detail = Detail(
                tree.label(ref).replace("##", "# #"),  # imgui would hide what follows
                node_fields(tree, ref),
                raw_lines(tree, ref),
                link_targets(tree, ref),
            )
            self._detail_of = (ref, self._bytes_version)
        detail = self._detail
        imgui.separator_text(detail.label)
        if imgui.small_button("Copy as text"):
            imgui.set_clipboard_text(node_text(tree, ref))
        mark("structure.copy")
        imgui.begin_child("##node")
        flags = imgui.TableFlags_
        if imgui.begin_table("##fields", 2, flags.sizing_fixed_fit | flags.no_saved_settings):
            for name, value in detail.fields:
                imgui.table_next_row()
                imgui.table_set_column_index(0)
                imgui.text_disabled(name)
                imgui.table_set_column_index(1)
                self._draw_value(name, value, detail.targets.get(name), state)
            imgui.end_table()
        imgui.push_font(theme.mono_font(), 0.0)
        for line in detail.words:
            imgui.text_unformatted(line)
        imgui.pop_font()
        imgui.end_child()

    def _draw_value(self, name: str, value: str, target: NodeRef | None, state: ViewState) -> None:
        """The value; one that names another node leads there."""
        if target is None:
            imgui.text_unformatted(value)
            return
        if imgui.text_link(f"{value}##{name}"):
            state.selected = target
        mark(f"structure.field.{name}")
