"""Opens the canvas: a window of the system (glfw), or an offscreen one that needs no display.

glfw's C code aborts the process when a window is made without a display, and rendercanvas does not
look at what `glfw.init` returned ("window-abort" in engine/gpu/faults.py). So the display is opened
here first, and what is missing is said in one line.
"""

import importlib
import os
import sys
import tempfile
import warnings
from typing import Any

from engine.gpu.errors import AdapterError
from engine.gpu.faults import works_around

HEADLESS = "use --offscreen, the commands that draw no window, or xvfb-run -a"
# glfw key code of the keypad's 0, and the keys that follow it, in glfw's order. rendercanvas
# would pass the codes on as characters of Latin Extended-A, two keys to a letter.
KEYPAD_0 = 320
KEYPAD = (*(f"Numpad{digit}" for digit in range(10)), "NumpadDecimal", "NumpadDivide")
KEYPAD += ("NumpadMultiply", "NumpadSubtract", "NumpadAdd", "NumpadEnter", "NumpadEqual")


def require_interface_library() -> None:
    """AdapterError (exit code 3) where imgui-bundle cannot be loaded: its library links to the X
    client libraries even where nothing is shown."""
    try:
        importlib.import_module("imgui_bundle")
    except ImportError as error:
        raise AdapterError(
            f"the interface library cannot be loaded: {error} (Debian: apt-get install libxext6)"
        ) from error


def require_display() -> None:
    """AdapterError (exit code 3) where no window can be opened; opens none itself."""
    if sys.platform.startswith("linux"):
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise AdapterError(f"no display: DISPLAY and WAYLAND_DISPLAY are not set; {HEADLESS}")
        if not os.environ.get("XDG_RUNTIME_DIR"):
            os.environ["XDG_RUNTIME_DIR"] = tempfile.gettempdir()
    import glfw

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyGLFW reports errors as warnings; ours is one line
        if glfw.init():
            return
        reason = glfw.get_error()[1] or "glfw cannot start"
    if isinstance(reason, bytes):
        reason = reason.decode(errors="replace")
    raise AdapterError(f"no display: {reason.strip()}; {HEADLESS}")


def check_display() -> None:
    """`require_display` where a window would end the process otherwise."""
    if works_around("window-abort"):
        require_display()


def offscreen_canvas(size: tuple[int, int], title: str, pixel_ratio: float) -> Any:
    """A canvas of `size` logical pixels that is only drawn when asked to."""
    from rendercanvas.offscreen import OffscreenRenderCanvas

    return OffscreenRenderCanvas(size=size, title=title, pixel_ratio=pixel_ratio)


def window_canvas(size: tuple[int, int], title: str) -> Any:
    """A window of the system, `size` in logical pixels. Raises AdapterError without a display."""
    check_display()
    from rendercanvas.glfw import GlfwRenderCanvas

    class Canvas(GlfwRenderCanvas):
        """rendercanvas' window, with the keypad, drawn by our own loop alone."""

        def _on_key(self, window: Any, key: int, scancode: int, action: int, mods: int) -> None:
            place = key - KEYPAD_0
            if not 0 <= place < len(KEYPAD):
                super()._on_key(window, key, scancode, action, mods)
            elif action in (0, 1):  # released, pressed; the interface repeats keys itself
                kind = "key_down" if action else "key_up"
                modifiers = tuple(self._key_modifiers)
                self.submit_event(
                    {"event_type": kind, "key": KEYPAD[place], "modifiers": modifiers}
                )

        def _time_to_paint(self) -> None:
            """Not from inside the system's resize callback: the next frame has the new size."""

    if Canvas._rc_canvas_group.get_loop() is not None:
        GlfwRenderCanvas.select_loop(None)
    return Canvas(size=size, title=title, vsync=True)
