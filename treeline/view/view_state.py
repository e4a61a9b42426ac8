"""What the user has chosen to look at. It changes what is shown, never what a frame does."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from treeline.view.node_ref import WHOLE_TLAS, NodeRef

if TYPE_CHECKING:
    from passes.outputs import Output
    from treeline.budgets import Budget
    from treeline.view.pick import Pick


@dataclass(slots=True)
class BoxOverlay:
    """Which boxes are drawn as lines: levels `low` to `high` (root 0) below the selected node's
    container, coloured by "level" or "kind"."""

    shown: bool = False
    low: int = 0
    high: int = 0
    colour_by: str = "level"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the picture knows of the output that it shows: the range in its unit that the colours
    span and the largest value (None where there are none, or not yet), the value under the cursor,
    and whether a baseline of it is kept."""

    output: "Output | None" = None
    range: tuple[float, float] | None = None
    maximum: float | None = None
    value: str = ""
    has_baseline: bool = False


@dataclass(slots=True)
class ViewState:
    """`shown` names an output of the frame; `heat_range` None is automatic; `cursor` is the frame
    pixel under the mouse, None outside the picture."""

    shown: str = "picture"
    palette: str = "viridis"
    heat_range: tuple[float, float] | None = None
    difference: bool = False
    cursor: tuple[int, int] | None = None
    picked: "Pick | None" = None
    selected: NodeRef | None = None
    boxes: BoxOverlay = field(default_factory=BoxOverlay)
    hidden: frozenset[int] = frozenset()  # TLAS instances
    ray_index: int = 0  # of the picked pixel's rays
    ray_step: int = 0
    show_help: bool = False
    budgets: "tuple[Budget, ...]" = ()
    budget: str | None = None  # whose passes alone the history shows
    seen: Seen = Seen()
    asked: list[str] = field(default_factory=list)  # commands that panels ask for
    panel_ms: float = 0.0  # host time of the last frame's interface
    messages: list[str] = field(default_factory=list)  # newest last; the status bar shows it


__all__ = ["WHOLE_TLAS", "BoxOverlay", "NodeRef", "Seen", "ViewState"]
