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

    def follow(self, session: "ViewSession", state: ViewState) -> StructureTree | None:
        """The tree of what is shown. With another structure nothing is selected any more, and what
        is hidden is what its scene has hidden."""
        frame = session.frame
        if frame is None:
            return self.tree
        bvh = frame.scene.prepared.bvh
        if self.tree is not None and self.tree.bvh is bvh:
            return self.tree
        # Hiding instances gives new words to the same structure.
        same = self.tree is not None and self.tree.bvh.blas_bases is bvh.blas_bases
        if not same:
            if self.tree is not None:
                state.selected = None
            self.version += 1
        state.hidden = frame.scene.hidden
        self.tree = StructureTree(bvh)
        self.bytes_version += 1
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
