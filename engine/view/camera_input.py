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
        self._place = (0.0, 0.0)  # up to where the mouse has been followed
        self._modifiers: set[str] = set()

    @property
    def holding(self) -> bool:
        """Whether a button went down on the picture that is still held."""
        return self._button is not None

    @property
    def dragging(self) -> bool:
        """True once the mouse moved too far for a click."""
        return self._button is not None and self._moved > CLICK_TRAVEL

    def update(self, control: CameraControl, hovered: bool, seconds: float) -> bool:
        """Feeds one frame's input to `control`, `seconds` after the frame before; `hovered` is
        whether the mouse is on the picture itself. True when the picture was clicked: the left
        button went down and up in place."""
        io = imgui.get_io()
        self._modifiers = {
            name for name, down in (("Shift", io.key_shift), ("Control", io.key_ctrl)) if down
        }
        clicked = self._press(control, hovered)
        if hovered and io.mouse_wheel:
            control.wheel(-io.mouse_wheel * NOTCH)
        self._keys(control)
        control.update(seconds)
        return clicked

    def step(
        self, control: CameraControl, pointer: tuple[float, float] | None, seconds: float
    ) -> None:
        """A frame that imgui has no part in, with the buttons and keys of the one before.
        `pointer` is where the mouse is by now, in imgui's coordinates."""
        if self._button is not None and pointer is not None:
            self._drag(control, pointer, self._button)
        control.update(seconds)

    def _press(self, control: CameraControl, hovered: bool) -> bool:
        mouse = imgui.get_io().mouse_pos
        if self._button is None and hovered:
            for button in range(len(BUTTONS)):
                if imgui.is_mouse_clicked(button):
                    self._button, self._moved = button, 0.0
                    delta = imgui.get_io().mouse_delta
                    self._place = (mouse.x - delta.x, mouse.y - delta.y)
                    break
        if self._button is None:
            return False
        self._drag(control, (mouse.x, mouse.y), self._button)
        if imgui.is_mouse_down(self._button):
            return False
        clicked = self._button == 0 and self._moved <= CLICK_TRAVEL
        self._button = None
        return clicked

    def _drag(self, control: CameraControl, pointer: tuple[float, float], button: int) -> None:
        """As far as the mouse has come since it was followed last. imgui's own measure counts from
        the last frame that it had a part in."""
        dx, dy = pointer[0] - self._place[0], pointer[1] - self._place[1]
        self._place = pointer
        self._moved += abs(dx) + abs(dy)
        if self.dragging and (dx or dy):
            control.drag(dx, dy, BUTTONS[button], self._modifiers)

    def _keys(self, control: CameraControl) -> None:
        if imgui.get_io().want_text_input:
            control.release_keys()
            return
        for name in FLY_KEYS:
            key = imgui_key(name)
            if imgui.is_key_pressed(key, False):
                control.key(name, True, self._modifiers)
            elif not imgui.is_key_down(key):
                control.key(name, False, self._modifiers)
        control.key("Shift", "Shift" in self._modifiers, self._modifiers)
