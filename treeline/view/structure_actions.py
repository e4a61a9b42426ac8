"""What keys and buttons do with the structure: focus, hide, show all, reset."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError
from treeline.view.structure_tree import StructureTree
from treeline.view.view_state import BoxOverlay, NodeRef, ViewState

if TYPE_CHECKING:
    from treeline.view.session import ViewSession

__all__ = ["focus_box", "hide_selected", "link_targets", "reset", "set_hidden", "show_all"]


def focus_box(session: "ViewSession", state: ViewState) -> NDArray[np.float64] | None:
    """[2, 3] the world box of the selected node, for a camera to look at; None without one."""
    tree = _tree(session)
    if tree is None or state.selected is None:
        return None
    box = tree.world_box(state.selected).astype(np.float64)
    return box if np.isfinite(box).all() else None


def hide_selected(session: "ViewSession", state: ViewState) -> None:
    """Hides the instance that the selected node is, or was reached through. UserError where there
    is none, or where it cannot be hidden."""
    tree = _tree(session)
    if tree is None or state.selected is None:
        raise UserError("select a node of an instance to hide it")
    instance = tree.instance_of(state.selected)
    if instance < 0:
        raise UserError("the selected node belongs to no instance: select one below the TLAS")
    set_hidden(session, state, state.hidden | {instance})


def show_all(session: "ViewSession", state: ViewState) -> None:
    """Shows all instances again."""
    set_hidden(session, state, frozenset())


def set_hidden(session: "ViewSession", state: ViewState, instances: frozenset[int]) -> None:
    """Hides these TLAS instances and shows all others."""
    session.set_hidden(instances)
    state.hidden = instances


def reset(session: "ViewSession", state: ViewState) -> None:
    """No selection, nothing hidden, no boxes. The camera is the caller's."""
    show_all(session, state)
    state.selected = None
    state.boxes = BoxOverlay()


def link_targets(tree: StructureTree, ref: NodeRef) -> dict[str, NodeRef]:
    """The nodes that lines of `node_fields` lead to, by the line's name."""
    targets: dict[str, NodeRef] = {}
    above = tree.parent(ref)
    if above is not None:
        targets["parent"] = above
    kind, children = tree.kind(ref), list(tree.children(ref))
    if kind in ("Box16", "Box32"):
        pointers = tree.words(ref)[:4].tolist()
        slots = {child.pointer: child for child in children}
        targets |= {f"slot {i}": slots[p] for i, p in enumerate(pointers) if p in slots}
    elif kind == "Instance":
        targets["BLAS"] = children[0]
    else:
        targets |= {f"triangle {child.triangle}": child for child in children}
    return targets


def _tree(session: "ViewSession") -> StructureTree | None:
    return None if session.prepared is None else StructureTree(session.prepared.bvh)
