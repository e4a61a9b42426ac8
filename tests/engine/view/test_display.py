"""Real windows in processes of their own: with a virtual display, and without any."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

OPEN = """
import sys
from engine.gpu.device import open_device
from engine.gpu.errors import UserError
from engine.view.display import require_interface_library
require_interface_library()
from engine.view.window import Window
try:
    window = Window(open_device(), (320, 200), "test", offscreen={offscreen})
except UserError as error:
    print(error)
    raise SystemExit(error.exit_code)
"""

LIVE = """
import glfw
from imgui_bundle import imgui
sizes, keys, frames = [], [], 0

def draw():
    global frames
    frames += 1
    sizes.append(tuple(window.pixel_size))
    if imgui.is_key_pressed(imgui.Key.keypad7): keys.append("keypad7")
    imgui.get_background_draw_list().add_rect_filled(
        imgui.ImVec2(0, 0), imgui.ImVec2(900, 900), imgui.get_color_u32((1.0, 0.5, 0.0, 1.0)))
    imgui.begin("window"); imgui.text(f"{frames}"); imgui.end()

def work():
    handle = window._canvas._window
    if frames == 5: window.resize(400, 260)
    if frames == 8: window._canvas._on_key(handle, glfw.KEY_KP_7, 0, glfw.PRESS, 0)
    if frames == 9: window._canvas._on_key(handle, glfw.KEY_KP_7, 0, glfw.RELEASE, 0)
    if frames == 12:
        picture = window.picture()
        assert picture.shape[:2] == tuple(window.pixel_size)[::-1]
        assert abs(picture[-1, -1].astype(int) - [255, 128, 0]).max() <= 1, picture[-1, -1]
    if frames == 15: window.replace_device(open_device())
    if frames >= 20: glfw.set_window_should_close(handle, True)

window.run(draw, work)
assert sizes[0] == (320, 200) and sizes[-1] == (400, 260), sizes
assert keys == ["keypad7"], keys
assert window.latency_ms and max(window.latency_ms) < 2000
window.close()
print("closed after", frames)
"""


def run(code: str, display: str | None, tmp_path: Path, *prefix: str) -> tuple[int, str]:
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("DISPLAY", "WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "XDG_RUNTIME_DIR")
    }
    environment["PYTHONPATH"] = str(ROOT)
    if display is not None:
        environment["DISPLAY"] = display
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("display", [None, ":9731", "nowhere.invalid:0"])
def test_no_display_is_one_line_and_exit_code_3(display: str | None, tmp_path: Path) -> None:
    code, output = run(OPEN.format(offscreen=False), display, tmp_path)
    assert code == 3, output
    assert len(output.splitlines()) == 1 and output.startswith("no display: "), output
    assert "--offscreen" in output and (display or "DISPLAY") in output


def test_offscreen_needs_no_display(tmp_path: Path) -> None:
    draw = "assert window.draw_once(lambda: None) and window.picture().shape == (200, 320, 3)"
    code, output = run(OPEN.format(offscreen=True) + draw, None, tmp_path)
    assert (code, output) == (0, "")


def test_window_opens_draws_resizes_and_closes(tmp_path: Path) -> None:
    if not (shutil.which("Xvfb") and shutil.which("xvfb-run") and shutil.which("xauth")):
        pytest.skip("no virtual display: the Debian packages xvfb and xauth are not installed")
    code, output = run(OPEN.format(offscreen=False) + LIVE, None, tmp_path, "xvfb-run", "-a")
    assert code == 0, output
    assert output == "closed after 20\n"
    assert os.listdir(tmp_path) == []
