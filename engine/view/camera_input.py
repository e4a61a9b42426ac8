"""Mouse over a picture and held keys into a camera control, by way of imgui. Keys that are tapped
are shortcuts, whose actions `CameraControl.act` takes.

Called right after the picture's item (an `imgui.invisible_button` or image), so that a press which
begins on the picture stays with it wherever the mouse goes, and one that begins on a panel never
moves the camera.
"""

from imgui_bundle import imgui

from engine.view.camera_control import FLY_KEYS, NOTCH, CameraControl
from engine.view.interface_input import imgui_key

BUTTONS = ("left", "right", "middle")  # imgui's order
CLICK_TRAVEL = 4.0  # logical pixels that a mouse may move and still have clicked


class CameraInput:
    """Which button a drag on the picture began with."""

    def __init__(self) -> None:
        self._button: int | None = None
        self._moved = 0.0

    @property
    def dragging(self) -> bool:
        """True once the mouse moved too far for a click."""
        return self._button is not None and self._moved > CLICK_TRAVEL

    def update(self, control: CameraControl, hovered: bool) -> bool:
        """Feeds one frame's input to `control`; `hovered` is whether the mouse is on the picture
        itself. True when the picture was clicked: the left button went down and up in place."""
        io = imgui.get_io()
        modifiers = {
            name for name, down in (("Shift", io.key_shift), ("Control", io.key_ctrl)) if down
        }
        clicked = self._drag(control, hovered, modifiers)
        if hovered and io.mouse_wheel:
            control.wheel(-io.mouse_wheel * NOTCH)
        self._keys(control, modifiers)
        control.update(io.delta_time)
        return clicked

    def _drag(self, control: CameraControl, hovered: bool, modifiers: set[str]) -> bool:
        io = imgui.get_io()
        if self._button is None and hovered:
            for button in range(len(BUTTONS)):
                if imgui.is_mouse_clicked(button):
                    self._button, self._moved = button, 0.0
                    break
        if self._button is None:
            return False
        self._moved += abs(io.mouse_delta.x) + abs(io.mouse_delta.y)
        if self.dragging and (io.mouse_delta.x or io.mouse_delta.y):
            control.drag(io.mouse_delta.x, io.mouse_delta.y, BUTTONS[self._button], modifiers)
        if imgui.is_mouse_down(self._button):
            return False
        clicked = self._button == 0 and self._moved <= CLICK_TRAVEL
        self._button = None
        return clicked

    def _keys(self, control: CameraControl, modifiers: set[str]) -> None:
        if imgui.get_io().want_text_input:
            control.release_keys()
            return
        for name in FLY_KEYS:
            key = imgui_key(name)
            if imgui.is_key_pressed(key, False):
                control.key(name, True, modifiers)
            elif not imgui.is_key_down(key):
                control.key(name, False, modifiers)
        control.key("Shift", "Shift" in modifiers, modifiers)
