"""The structure that the shown frame traces, as what panels and lines are about."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treeline.view.structure_tree import TRIANGLE, StructureTree
from treeline.view.view_state import NodeRef, ViewState

if TYPE_CHECKING:
    from treeline.view.session import ViewSession


class StructureView:
    """One for the whole window: `follow` it before anything shows nodes. `version` counts
    structures, `bytes_version` also changes of their bytes (hidden instances)."""

    def __init__(self) -> None:
        self.tree: StructureTree | None = None
        self.version = self.bytes_version = 0
        self._checked: NodeRef | None = None  # a selection that is in the tree

    def follow(self, session: "ViewSession", state: ViewState) -> StructureTree | None:
        """The tree of what is shown. With another structure nothing is selected any more but what
        was picked from it, and what is hidden is what its scene has hidden."""
        frame = session.frame
        if frame is None:
            return self.tree
        scene, picked = frame.scene, state.picked
        bvh = scene.prepared.bvh
        if scene.moving and picked is not None and picked.traced.scene is scene:
            bvh = picked.traced.bvh  # the structure of that moment
        if self.tree is None or self.tree.bvh is not bvh:
            # Hiding instances gives new words to the same structure.
            if self.tree is None or self.tree.bvh.blas_bases is not bvh.blas_bases:
                if self.tree is not None and (picked is None or picked.traced.bvh is not bvh):
                    state.selected = None
                self.version += 1
            state.hidden = scene.hidden
            self.tree = StructureTree(bvh)
            self.bytes_version += 1
            self._checked = None
        if state.selected != self._checked:
            if state.selected is not None and not self.tree.holds(state.selected):
                state.messages.append("the selected node is not in the structure that is shown")
                state.selected = None
            self._checked = state.selected
        return self.tree


class StructureRows:
    """A structure as `engine.view.panels.tree` shows one."""

    columns: Sequence[str] = ("pointer", "byte offset", "level", "children", "half area m2")

    def __init__(self, view: StructureView) -> None:
        self._view = view

    @property
    def tree(self) -> StructureTree:
        assert self._view.tree is not None
        return self._view.tree

    def roots(self) -> Sequence[NodeRef]:
        return self.tree.roots() if self._view.tree else []

    def children(self, key: NodeRef) -> Sequence[NodeRef]:
        return self.tree.children(key)

    def has_children(self, key: NodeRef) -> bool:
        return self.tree.kind(key) != TRIANGLE and bool(self.tree.children(key))

    def label(self, key: NodeRef) -> str:
        return self.tree.label(key)

    def cells(self, key: NodeRef) -> Sequence[str]:
        row = self.tree.row(key)
        return (
            f"0x{row.pointer:08x}",
            f"{row.offset:,}",
            str(row.level),
            str(row.children),
            f"{row.half_area:.4g}",
        )
