"""What a panel of the viewer is."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState


class Panel(Protocol):
    """Draws itself with imgui into the region that the viewer opened for it. It may change the
    `state` and call the session's methods; it never submits GPU work or waits for it."""

    title: str  # the tab's name

    def draw(self, session: "ViewSession", state: "ViewState") -> None: ...

    def stale(self, session: "ViewSession", state: "ViewState") -> bool:
        """Whether numbers that come by themselves are newer than those that `draw` has shown last;
        asked ten times a second. What a hand changes is seen at once (`shown_by_panels`)."""
        ...
