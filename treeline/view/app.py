"""The viewer: one window over one session. It lays out the panels and turns keys, menus and clicks
into commands; what is drawn and measured is the session's.
"""

from pathlib import Path
from typing import Any

from imgui_bundle import imgui

from engine.gpu.errors import AdapterError, UserError
from engine.view.camera_control import CameraControl
from engine.view.settings import Settings
from engine.view.window import Window
from passes.outputs import Output, frame_outputs
from treeline.view.actions import make_actions
from treeline.view.between import BetweenBuilds
from treeline.view.commands import make_shortcuts
from treeline.view.controls_panel import ControlsPanel
from treeline.view.layout import PANEL_SHARE, arrange, drag_border
from treeline.view.menus import Menus
from treeline.view.panel_tabs import PanelTabs
from treeline.view.panels import make_panels
from treeline.view.pick import pick, pick_source
from treeline.view.picture_panel import Picture
from treeline.view.ray_panel import RayPanel
from treeline.view.session import ViewSession
from treeline.view.status_bar import StatusBar
from treeline.view.structure_panel import StructurePanel
from treeline.view.structure_view import StructureView
from treeline.view.time_line import TimeLine
from treeline.view.view_error import expected_errors
from treeline.view.view_state import ViewState
from treeline.view.viewport import Viewport

# Kept between runs. Options of the frame are not: a run measures what its command line says.
KEPT = {"panel_share": PANEL_SHARE, "panel": "Controls", "palette": "viridis", "fly": False}

MOST_MESSAGES = 100  # that are kept; the status bar shows the newest


class Viewer:
    """`render_size` fixes the frame's size; None: the picture's place. Exports go to `folder`."""

    def __init__(
        self,
        window: Window,
        session: ViewSession,
        settings: Settings,
        folder: Path,
        render_size: tuple[int, int] | None = None,
    ) -> None:
        self.window = window
        self.session = session
        self.settings = settings
        self.folder = folder
        self.state = ViewState(palette=settings["palette"])
        self.structure = StructureView()
        self.panels = make_panels(self.structure)
        self.ray_cursor = next(p for p in self.panels if isinstance(p, RayPanel)).cursor
        self.controls = next(p for p in self.panels if isinstance(p, ControlsPanel))
        self.structure_panel = next(p for p in self.panels if isinstance(p, StructurePanel))
        self.time_line = TimeLine(session)
        self.shortcuts = make_shortcuts()
        self.viewport = Viewport(
            window,
            session,
            self.state,
            self.time_line,
            render_size,
            self.pick_soon,
            fly=bool(settings["fly"]),
        )
        self.quit = False
        self._wanted_pick: tuple[int, int] | None = None
        self.tabs = PanelTabs(self.panels, settings)
        self.menus, self.status = Menus(), StatusBar()
        self._actions = make_actions(self)
        self.between = BetweenBuilds(self)

    # ---- one frame of the interface ------------------------------------------------------------

    def draw(self) -> None:
        """Builds the interface; called by the window in frames in which it may have changed, in
        others `between` goes on."""
        # Tab switches between A and B; it must not wander into a slider's text.
        imgui.push_item_flag(imgui.ItemFlags_.no_tab_stop, True)
        for action in self.shortcuts.pressed():
            # Escape closes the help, and no more than that.
            if not (self.state.show_help and action == "unpick"):
                self.act(action)
        self.time_line.advance(self.window.seconds)
        self.follow()
        size = self.window.logical_size
        self.menus.draw(
            size[0],
            self.shortcuts,
            self.outputs,
            self.state.shown,
            [panel.title for panel in self.panels],
            self.act,
            self.ticked,
        )
        layout = arrange(
            size,
            self.menus.height,
            1.5 * imgui.get_text_line_height_with_spacing(),
            float(self.settings["panel_share"]),
        )
        self.viewport.draw(layout.picture, self.structure.tree, self.ray_cursor.walks)
        self.settings["panel_share"] = drag_border(
            layout.border, size[0], float(self.settings["panel_share"])
        )
        self.structure_panel.overlay = self.viewport.boxes.stats
        self.state.panel_ms = self.window.mean_panel_ms
        self.tabs.draw(layout.panels, self.session, self.state, self.version)
        del self.state.messages[:-MOST_MESSAGES]
        while self.state.asked:
            self.act(self.state.asked.pop(0))
        self.status.draw(
            layout.status,
            self.session,
            self.window,
            self.state.messages,
            self.viewport.picture.value,
        )
        if self.state.show_help:
            self.state.show_help = self.shortcuts.draw_help()
        imgui.pop_item_flag()

    @property
    def version(self) -> tuple[Any, ...]:
        """Of what panels show beside the session's measurements and the state."""
        return (
            self.structure.version,
            self.structure.bytes_version,
            self.viewport.boxes.stats.reading,
            len(self.ray_cursor.walks),
            len(self.ray_cursor.checks),
        )

    def refresh(self) -> None:
        """Builds all of the interface in the next frame: what it shows is exactly what there is."""
        for part in (self.menus, self.tabs, self.status):
            part.quiet.refresh()

    @property
    def settling(self) -> bool:
        """Whether a part has to be built in the next frame."""
        return any(part.quiet.settling for part in (self.menus, self.tabs, self.status))

    def follow(self) -> None:
        """Takes up another structure and another pick. A pick is of one scene on the GPU: with
        another structure it is over."""
        frame, picked = self.session.frame, self.state.picked
        if picked is not None and frame is not None and picked.traced.scene is not frame.scene:
            self.state.picked = None
        self.structure.follow(self.session, self.state)
        self.ray_cursor.follow(self.state)

    def work(self) -> None:
        """A part of the session's work, after the window has been presented."""
        self.session.step()
        self._follow_device()
        if self.session.error is None:
            try:
                self._pick_wanted()
                self.ray_cursor.work(self.session)
            except expected_errors() as error:
                self.session.fail(error)
        if self.quit:
            self.window.close()

    def recover(self, error: AdapterError) -> None:
        """The window's device was lost: another one shows what happened. AdapterError where there
        is none."""
        self.session.fail(error)
        self.session.reopen()
        self._follow_device()

    def _follow_device(self) -> None:
        if self.session.device is not self.window.device:
            self.window.replace_device(self.session.device)
            self.viewport.open_device()

    # ---- commands --------------------------------------------------------------------------

    @property
    def picture(self) -> Picture:
        return self.viewport.picture

    @property
    def control(self) -> CameraControl:
        return self.viewport.control

    @property
    def outputs(self) -> tuple[Output, ...]:
        return frame_outputs(self.session.settings.frame)

    def act(self, action: str) -> None:
        """Runs a command; what cannot be done is said in the status bar."""
        self.refresh()
        try:
            if action in self._actions:
                self._actions[action]()
            elif action.startswith("show "):
                self.state.shown = action.removeprefix("show ")
            elif action.startswith("panel "):
                self.tabs.wanted = action.removeprefix("panel ")
            elif not self.ray_cursor.act(action, self.state):
                self.viewport.control.act(action)
        except UserError as error:
            self.say(str(error))
        except OSError as error:
            self.say(f"{error.filename}: {error.strerror}")
        except expected_errors() as error:
            self.session.fail(error)

    def say(self, text: str) -> None:
        self.state.messages.append(text)

    def ticked(self, action: str) -> bool:
        """Whether a menu shows the command as on."""
        return {
            "boxes": self.state.boxes.shown,
            "difference": self.state.difference,
            "counters": self.session.settings.frame.count,
            "fly": self.viewport.flies,
            "camera path": self.time_line.follows_path,
        }.get(action, False)

    def pick(self, x: int, y: int) -> None:
        """Picks a pixel of the frame: its rays, and its triangle's node in the tree."""
        self.state.picked = picked = pick(self.session, x, y)
        self.state.selected = picked.path[-1] if picked.path else None

    def pick_soon(self, x: int, y: int) -> None:
        """Picks after the next present, or once a frame has been drawn to its end."""
        self._wanted_pick = (x, y)

    def _pick_wanted(self) -> None:
        if self._wanted_pick is None or pick_source(self.session) is None:
            return
        wanted, self._wanted_pick = self._wanted_pick, None
        try:
            self.pick(*wanted)
        except UserError as error:
            self.say(str(error))

    def close(self) -> None:
        """Keeps the settings for the next run."""
        self.settings["palette"] = self.state.palette
        message = self.settings.save()
        if message:
            self.say(message)

    def find_option(self) -> None:
        """Brings the search over the options to front, with the keyboard in it."""
        self.tabs.wanted = ControlsPanel.title
        self.controls.find_soon = True

    def toggle_fly(self) -> None:
        """Between flying and orbiting, from where the camera is."""
        self.settings["fly"] = not self.viewport.flies
        self.viewport.take_control(fly=self.settings["fly"])
