"""What the viewer does in frames whose interface is not built: time, camera and picture go on."""

from typing import Any, Protocol

from engine.view.camera_control import CameraControl
from engine.view.same import same
from treeline.view.panel_tabs import PanelTabs, shown_by_panels
from treeline.view.ray_cursor import RayCursor
from treeline.view.session import ViewSession
from treeline.view.structure_view import StructureView
from treeline.view.time_line import TimeLine
from treeline.view.view_error import expected_errors
from treeline.view.view_state import ViewState
from treeline.view.viewport import Viewport


class Shown(Protocol):
    """What of the viewer this looks at."""

    session: ViewSession
    state: ViewState
    structure: StructureView
    tabs: PanelTabs
    time_line: TimeLine
    viewport: Viewport
    ray_cursor: RayCursor

    @property
    def control(self) -> CameraControl: ...

    @property
    def version(self) -> tuple[Any, ...]: ...

    @property
    def settling(self) -> bool: ...

    def follow(self) -> None: ...


class BetweenBuilds:
    """The one place that knows what the interface shows (`engine.view.interface_pace.Between`)."""

    def __init__(self, viewer: Shown) -> None:
        self._viewer = viewer
        self._shown: tuple[Any, ...] = ()

    @property
    def dragging(self) -> bool:
        """The picture has the mouse."""
        return self._viewer.viewport.camera_input.holding

    def changed(self) -> bool:
        """Numbers that follow each other from frame to frame are not looked at: those are seen ten
        times a second."""
        viewer = self._viewer
        shown = self._find_shown()
        changed = not same(shown, self._shown)
        self._shown = shown
        state = viewer.state
        return changed or bool(state.asked) or viewer.settling

    def _find_shown(self) -> tuple[Any, ...]:
        viewer = self._viewer
        session, state, time_line = viewer.session, viewer.state, viewer.time_line
        timed, frame = session.timed, session.frame
        return (
            *shown_by_panels(session, state),
            *viewer.version,
            viewer.tabs.wanted,
            viewer.control,
            viewer.viewport.picture.drawn > 0,
            None if frame is None else frame.scene,
            timed is None or timed.valid,
            state.messages[-1] if state.messages else "",
            state.show_help,
            session.hidden,
            time_line.clip,
            time_line.follows_path,
            time_line.transport.playing,
        )

    def step(self, seconds: float, pointer: tuple[float, float] | None) -> None:
        """Never raises what a user can mend: that is the session's error, and shown next."""
        viewer = self._viewer
        try:
            viewer.time_line.advance(seconds)
            viewer.follow()
        except expected_errors() as error:
            viewer.session.fail(error)
            return
        viewer.viewport.step(seconds, pointer, viewer.structure.tree, viewer.ray_cursor.walks)
