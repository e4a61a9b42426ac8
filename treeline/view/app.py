"""The viewer: one window over one session. It lays out the panels, turns keys and mouse into
commands, and hands the picture to the screen; what is drawn and measured is the session's.
"""

import time
from pathlib import Path
from typing import Any

from imgui_bundle import imgui

from engine.gpu.errors import AdapterError, UserError
from engine.scene.scene import scene_bounds
from engine.view.camera_control import CameraControl, FlyControl, OrbitControl
from engine.view.camera_input import CameraInput
from engine.view.marks import mark
from engine.view.panels.message import message_box
from engine.view.settings import Settings
from engine.view.window import Window
from passes.outputs import Output, frame_outputs
from treeline.view.actions import make_actions
from treeline.view.box_overlay import BoxDrawing
from treeline.view.caption import draw_caption, draw_waiting
from treeline.view.commands import make_shortcuts
from treeline.view.layout import PANEL_SHARE, arrange, begin_region, drag_border, fit_inside
from treeline.view.menus import draw_menus
from treeline.view.panels import make_panels
from treeline.view.pick import pick, pick_source
from treeline.view.picture_panel import Picture
from treeline.view.ray_overlay import RayDrawing
from treeline.view.ray_panel import RayPanel
from treeline.view.session import ViewSession
from treeline.view.status_bar import draw_status
from treeline.view.structure_panel import StructurePanel
from treeline.view.structure_view import StructureView
from treeline.view.time_line import TimeLine
from treeline.view.view_error import expected_errors
from treeline.view.view_state import ViewState

# Kept between runs. Options of the frame are not: a run measures what its command line says.
KEPT = {"panel_share": PANEL_SHARE, "panel": "Controls", "palette": "viridis", "fly": False}

MOST_MESSAGES = 100  # that are kept; the status bar shows the newest
ERROR_TITLES = {
    "device": "The device was lost",
    "shader": "A shader could not be compiled",
    "limit": "This needs more than the adapter has",
    "request": "This cannot be done",
    "fault": "Something is wrong in Treeline",
}


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
        self.render_size = render_size
        self.state = ViewState(palette=settings["palette"])
        self.structure = StructureView()
        self.panels = make_panels(self.structure)
        self.ray_cursor = next(p for p in self.panels if isinstance(p, RayPanel)).cursor
        self.structure_panel = next(p for p in self.panels if isinstance(p, StructurePanel))
        self.time_line = TimeLine(session)
        self._open_device()
        self.shortcuts = make_shortcuts()
        self.camera_input = CameraInput()
        self.control = self._make_control(bool(settings["fly"]))
        self.quit = False
        self._wanted_pick: tuple[int, int] | None = None
        self.open_panel: str | None = settings["panel"]  # the tab to bring to front
        self._actions = make_actions(self)

    def _open_device(self) -> None:
        """What belongs to the session's device."""
        self.picture = Picture(self.session.device, self.window)
        self.rays = RayDrawing(self.picture.lines)
        self.boxes = BoxDrawing(self.picture.lines)

    # ---- one frame of the interface ------------------------------------------------------------

    def draw(self) -> None:
        """Builds the interface; called by the window once a frame."""
        # Tab switches between A and B; it must not wander into a slider's text.
        imgui.push_item_flag(imgui.ItemFlags_.no_tab_stop, True)
        for action in self.shortcuts.pressed():
            # Escape closes the help, and no more than that.
            if not (self.state.show_help and action == "unpick"):
                self.act(action)
        self.time_line.advance(imgui.get_io().delta_time)
        self._follow_structure()
        self.ray_cursor.follow(self.state)
        menu = draw_menus(
            self.shortcuts,
            self.outputs,
            self.state.shown,
            [panel.title for panel in self.panels],
            self.act,
            self.ticked,
        )
        line = imgui.get_text_line_height_with_spacing()
        layout = arrange(
            self.window.logical_size, menu, 1.5 * line, float(self.settings["panel_share"])
        )
        self._draw_picture(layout.picture)
        self.settings["panel_share"] = drag_border(
            layout.border, self.window.logical_size[0], float(self.settings["panel_share"])
        )
        self.state.panel_ms = self.window.panel_ms
        self._draw_panels(layout.panels)
        del self.state.messages[:-MOST_MESSAGES]
        while self.state.asked:
            self.act(self.state.asked.pop(0))
        begin_region("##status", layout.status)
        draw_status(self.session, self.window, self.state.messages, self.picture.value)
        imgui.end()
        if self.state.show_help:
            self.state.show_help = self.shortcuts.draw_help()
        imgui.pop_item_flag()

    def _follow_structure(self) -> None:
        """A pick is of one scene on the GPU: with another structure it is over."""
        frame, picked = self.session.frame, self.state.picked
        if picked is not None and frame is not None and picked.traced.scene is not frame.scene:
            self.state.picked = None
        self.structure.follow(self.session, self.state)

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
            self._open_device()

    def _draw_panels(self, region: Any) -> None:
        begin_region("##panels", region)
        push_tab_style()
        bar = imgui.begin_tab_bar("##tabs", imgui.TabBarFlags_.fitting_policy_mixed)
        pop_tab_style()
        if bar:
            for panel in self.panels:
                wanted = self.open_panel == panel.title
                flags = imgui.TabItemFlags_.set_selected if wanted else 0
                push_tab_style()
                opened, _ = imgui.begin_tab_item(panel.title, None, flags)
                pop_tab_style()
                mark(f"tab.{panel.title}")
                if opened:
                    if wanted:
                        self.open_panel = None
                    if self.open_panel is None:
                        self.settings["panel"] = panel.title
                    imgui.begin_child(f"##{panel.title}")
                    panel.draw(self.session, self.state)
                    imgui.end_child()
                    imgui.end_tab_item()
            imgui.end_tab_bar()
        imgui.end()

    def _draw_picture(self, region: Any) -> None:
        begin_region("##picture", region, padding=False)
        height = region.height
        if self.time_line:
            height -= 1.6 * imgui.get_frame_height()
        size = (max(1.0, region.width), max(1.0, height))
        if self.render_size is not None:
            place, size = size, fit_inside(size, self.render_size)
            imgui.set_cursor_pos((0.5 * (place[0] - size[0]), 0.5 * (place[1] - size[1])))
        pixels = self.window.device_pixels(size)
        if self.session.error is not None:
            self._draw_error()
        else:
            self._show_picture(size, pixels)
        if self.time_line:
            imgui.set_cursor_pos((6.0, height + 0.3 * imgui.get_frame_height()))
            self.time_line.draw()
        imgui.end()

    def _show_picture(self, size: tuple[float, float], pixels: tuple[int, int]) -> None:
        corner = imgui.get_cursor_screen_pos()
        imgui.invisible_button("##view", size, _ANY_BUTTON)
        mark("picture")
        hovered = imgui.is_item_hovered()
        self._follow_mouse(hovered, (corner.x, corner.y), size)
        self.picture.resize(pixels)
        self.session.resize(*(self.render_size or pixels))
        started = time.perf_counter()
        try:
            batches, lines = self._lines(pixels)
            self.picture.update(self.session, self.state, batches, lines)
        except expected_errors() as error:
            self.session.fail(error)
            return
        self.picture.host_ms = 1e3 * (time.perf_counter() - started)
        if self.picture.drawn:
            imgui.get_window_draw_list().add_image(
                self.window.image(self.picture.target.view),
                corner,
                (corner.x + size[0], corner.y + size[1]),
            )
            draw_caption(self.state, (corner.x, corner.y), size)
        else:
            draw_waiting(self.session.busy or "", (corner.x, corner.y), size)

    def _follow_mouse(
        self, hovered: bool, corner: tuple[float, float], size: tuple[float, float]
    ) -> None:
        """Camera, cursor and click."""
        self.control.size = size
        clicked = self.camera_input.update(self.control, hovered)
        self.session.set_camera(self.control.camera(), self.control.moving)
        mouse = imgui.get_io().mouse_pos
        width, height = self.session.size
        x = int((mouse.x - corner[0]) / size[0] * width) if hovered else -1
        y = int((mouse.y - corner[1]) / size[1] * height) if hovered else -1
        inside = hovered and 0 <= x < width and 0 <= y < height
        self.state.cursor = (x, y) if inside and not self.camera_input.dragging else None
        if clicked and inside:
            self.pick_soon(x, y)

    def _draw_error(self) -> None:
        error = self.session.error
        assert error is not None
        if message_box("error", ERROR_TITLES[error.kind], error.message):
            self.session.retry()

    # ---- commands --------------------------------------------------------------------------

    @property
    def outputs(self) -> tuple[Output, ...]:
        return frame_outputs(self.session.settings.frame)

    def act(self, action: str) -> None:
        """Runs a command; what cannot be done is said in the status bar."""
        try:
            if action in self._actions:
                self._actions[action]()
            elif action.startswith("show "):
                self.state.shown = action.removeprefix("show ")
            elif action.startswith("panel "):
                self.open_panel = action.removeprefix("panel ")
            elif not self.ray_cursor.act(action, self.state):
                self.control.act(action)
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
            "fly": isinstance(self.control, FlyControl),
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

    def toggle_fly(self) -> None:
        """Between flying and orbiting, from where the camera is."""
        self.settings["fly"] = not isinstance(self.control, FlyControl)
        self.control = self._make_control(bool(self.settings["fly"]))

    def _make_control(self, fly: bool) -> CameraControl:
        scene = self.session.scene
        box = scene_bounds(scene.meshes, scene.instances)
        return (FlyControl if fly else OrbitControl)(self.session.camera, box)

    def _lines(self, size: tuple[int, int]) -> tuple[list[Any], Any]:
        """What is drawn over the picture, and which version of it that is."""
        session, state = self.session, self.state
        tree = self.structure.tree
        if tree is None:
            return [], None
        self.boxes.update(
            tree, state.boxes, state.selected, session.camera, size, moving=session.moving
        )
        self.structure_panel.overlay = self.boxes.stats
        self.rays.update(state.picked, state.ray_index, self.ray_cursor.walks, state.ray_step)
        return [*self.boxes.batches, *self.rays.batches], (self.boxes.version, self.rays.version)


def push_tab_style() -> None:
    """Tabs close together, so that all of them are seen in a small window."""
    imgui.push_style_var(imgui.StyleVar_.item_inner_spacing, (2.0, 4.0))
    imgui.push_style_var(imgui.StyleVar_.frame_padding, (4.0, 3.0))


def pop_tab_style() -> None:
    imgui.pop_style_var(2)


_ANY_BUTTON = (
    imgui.ButtonFlags_.mouse_button_left
    | imgui.ButtonFlags_.mouse_button_right
    | imgui.ButtonFlags_.mouse_button_middle
)
