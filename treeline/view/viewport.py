"""The picture's place in the window: the picture with its lines, the mouse over it, the camera; an
error in its place, and the time line below it.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from imgui_bundle import imgui

from engine.scene.camera import Camera
from engine.scene.scene import scene_bounds
from engine.view.camera_control import CameraControl, FlyControl, OrbitControl
from engine.view.camera_input import CameraInput
from engine.view.marks import mark
from engine.view.panels.message import message_box
from engine.view.window import Window
from treeline.view.box_overlay import BoxDrawing
from treeline.view.caption import draw_caption, draw_waiting
from treeline.view.layout import Region, begin_region, fit_inside
from treeline.view.picture_panel import Picture
from treeline.view.ray_overlay import RayDrawing
from treeline.view.ray_walk import RayWalk
from treeline.view.session import ViewSession
from treeline.view.structure_tree import StructureTree
from treeline.view.time_line import TimeLine
from treeline.view.view_error import expected_errors
from treeline.view.view_state import ViewState

ERROR_TITLES = {
    "device": "The device was lost",
    "shader": "A shader could not be compiled",
    "limit": "This needs more than the adapter has",
    "request": "This cannot be done",
    "fault": "Something is wrong in Treeline",
}

_ANY_BUTTON = (
    imgui.ButtonFlags_.mouse_button_left
    | imgui.ButtonFlags_.mouse_button_right
    | imgui.ButtonFlags_.mouse_button_middle
)


class Viewport:
    """`render_size` fixes the frame's size; None: this place. `pick(x, y)` is called with the pixel
    that was clicked. `control` moves the session's camera."""

    def __init__(
        self,
        window: Window,
        session: ViewSession,
        state: ViewState,
        time_line: TimeLine,
        render_size: tuple[int, int] | None,
        pick: Callable[[int, int], None],
        *,
        fly: bool,
    ) -> None:
        self.window, self.session, self.state, self.time_line = window, session, state, time_line
        self.camera_input = CameraInput()
        self.render_size = render_size
        self._pick = pick
        self._led: Camera | None = None  # where the time line has put the camera
        self.open_device()
        self.take_control(fly=fly)

    def open_device(self) -> None:
        """What belongs to the session's device."""
        self.picture = Picture(self.session.device, self.window)
        self.rays = RayDrawing(self.picture.lines)
        self.boxes = BoxDrawing(self.picture.lines)

    @property
    def flies(self) -> bool:
        return isinstance(self.control, FlyControl)

    def take_control(self, *, fly: bool) -> None:
        """Flying or orbiting, from where the camera is."""
        scene = self.session.scene
        box = scene_bounds(scene.meshes, scene.instances)
        self.control: CameraControl = (FlyControl if fly else OrbitControl)(
            self.session.camera, box
        )

    def draw(
        self,
        region: Region,
        tree: StructureTree | None,
        walks: Mapping[int, RayWalk],
    ) -> None:
        """Builds this part of the interface. `tree` is the structure whose boxes are drawn, `walks`
        are the steps of the picked pixel's rays."""
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
            self._show(size, pixels, tree, walks)
        if self.time_line:
            imgui.set_cursor_pos((6.0, height + 0.3 * imgui.get_frame_height()))
            self.time_line.draw()
        imgui.end()

    def _show(
        self,
        size: tuple[float, float],
        pixels: tuple[int, int],
        tree: StructureTree | None,
        walks: Mapping[int, RayWalk],
    ) -> None:
        corner = imgui.get_cursor_screen_pos()
        imgui.invisible_button("##view", size, _ANY_BUTTON)
        mark("picture")
        hovered = imgui.is_item_hovered()
        self._follow_mouse(hovered, (corner.x, corner.y), size)
        self.picture.resize(pixels)
        self.session.resize(*(self.render_size or pixels))
        if not self._update_picture(tree, walks):
            return
        if self.picture.drawn:
            imgui.get_window_draw_list().add_image(
                self.window.image(self.picture.target.view),
                corner,
                (corner.x + size[0], corner.y + size[1]),
            )
            draw_caption(self.state, (corner.x, corner.y), size)
        else:
            draw_waiting(self.session.busy or "", (corner.x, corner.y), size)

    def step(
        self,
        seconds: float,
        pointer: tuple[float, float] | None,
        tree: StructureTree | None,
        walks: Mapping[int, RayWalk],
    ) -> None:
        """A frame whose interface is not built: the camera and the picture go on. `pointer` is
        where the mouse is."""
        if self.session.error is not None:
            return
        self._follow_path()
        self.camera_input.step(self.control, pointer, seconds)
        self.session.set_camera(self.control.camera(), self.control.moving)
        if self.camera_input.dragging:
            self.state.cursor = None
        self._update_picture(tree, walks)

    def _update_picture(self, tree: StructureTree | None, walks: Mapping[int, RayWalk]) -> bool:
        """Lines and display pass, where they have changed; False after an error."""
        started = time.perf_counter()
        try:
            batches, lines = self._lines(self.picture.target.size, tree, walks)
            self.picture.update(self.session, self.state, batches, lines)
        except expected_errors() as error:
            self.window.commands.drop()
            self.session.fail(error)
            return False
        self.picture.host_ms = 1e3 * (time.perf_counter() - started)
        return True

    def _follow_mouse(
        self, hovered: bool, corner: tuple[float, float], size: tuple[float, float]
    ) -> None:
        """Camera, cursor and click."""
        self.control.size = size
        self._follow_path()
        clicked = self.camera_input.update(self.control, hovered, self.window.seconds)
        self.session.set_camera(self.control.camera(), self.control.moving)
        mouse = imgui.get_io().mouse_pos
        width, height = self.session.size
        x = int((mouse.x - corner[0]) / size[0] * width) if hovered else -1
        y = int((mouse.y - corner[1]) / size[1] * height) if hovered else -1
        inside = hovered and 0 <= x < width and 0 <= y < height
        self.state.cursor = (x, y) if inside and not self.camera_input.dragging else None
        if clicked and inside:
            self._pick(x, y)

    def _follow_path(self) -> None:
        """Puts the camera where the time line has it, until a hand moves it."""
        if self._led is not None and not self._led.same_as(self.control.camera()):
            self.time_line.follow_path(False)
        self._led = self.time_line.camera()
        if self._led is not None and not self._led.same_as(self.control.camera()):
            self.control.set_camera(self._led)

    def _draw_error(self) -> None:
        error = self.session.error
        assert error is not None
        if message_box("error", ERROR_TITLES[error.kind], error.message):
            self.session.retry()

    def _lines(
        self, size: tuple[int, int], tree: StructureTree | None, walks: Mapping[int, RayWalk]
    ) -> tuple[list[Any], Any]:
        """What is drawn over the picture, and which version of it that is."""
        session, state = self.session, self.state
        if tree is None:
            return [], None
        self.boxes.update(
            tree, state.boxes, state.selected, session.camera, size, moving=session.moving
        )
        self.rays.update(state.picked, state.ray_index, walks, state.ray_step)
        return [*self.boxes.batches, *self.rays.batches], (self.boxes.version, self.rays.version)
