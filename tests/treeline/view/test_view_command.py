"""`treeline view` as a process: for a script, with mistakes, and as a window that a person uses."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.gpu.errors import UserError
from treeline.view.start import find_panel

ROOT = Path(__file__).resolve().parents[3]
HEADLESS = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}

# Inside of a virtual display: waits for the picture by asking for its report, clicks, presses,
# takes a screenshot, closes. Arguments: how it is to end, then the viewer's command.
USER = r"""
import glob, os, signal, subprocess, sys, time
end, command = sys.argv[1], sys.argv[2:]
def tool(*words):
    return subprocess.run(["xdotool", *map(str, words)], capture_output=True, text=True).stdout
def tap(key, modifier=None):
    for name in filter(None, (modifier, key)):
        tool("keydown", name)
        time.sleep(0.05)
    for name in filter(None, (key, modifier)):
        tool("keyup", name)
        time.sleep(0.05)
def until(done):
    limit = time.monotonic() + 120
    while not done():
        assert time.monotonic() < limit and viewer.poll() is None, "the viewer does not answer"
        time.sleep(0.1)
viewer = subprocess.Popen(command)
until(lambda: tool("search", "--name", "^Treeline: box.obj"))
window = tool("search", "--name", "^Treeline: box.obj").split()[0]
tool("windowfocus", window)
def reported():
    tap("e", "ctrl")
    return glob.glob("*report.csv")
until(reported)
tool("mousemove", "--window", window, 150, 150, "click", 1)
def taken():
    tap("F12")
    return glob.glob("*window.png")
until(taken)
if end == "key":
    tap("q", "ctrl")
else:
    viewer.send_signal(signal.SIGINT)
print("code", viewer.wait(20), flush=True)
"""


def view(*words: object, cwd: Path, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Exit code and stderr of `treeline view`."""
    done = subprocess.run(
        [sys.executable, "-m", "treeline", "view", *map(str, words)],
        cwd=cwd,
        env={**(env or HEADLESS), "PYTHONPATH": str(ROOT), "TREELINE_CONFIG": str(cwd / "config")},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def counts(path: Path) -> dict[str, Any]:
    """Every counted number, by row and field."""
    rows = json.loads(path.read_text())["benchmarks"]
    return {
        f"{row['name']} {field}": row[field]
        for row in rows
        if row["name"].startswith(("ray/", "object/"))
        for field, run in row["run"].items()
        if run == "counted"
    }


def test_a_script_gets_picture_and_numbers_and_the_same_twice(box: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        words = ("--scene", box, "--size", "480x270", "--render", "32x18", "--frames", 2, "-q")
        files = ("--screenshot", tmp_path / f"{name}.png", "--stats", tmp_path / f"{name}.json")
        code, text = view(*words, "--offscreen", *files, "--pick", "16,9", cwd=tmp_path)
        assert (code, text) == (0, "")
    assert counts(tmp_path / "one.json") == counts(tmp_path / "two.json")
    assert len(counts(tmp_path / "one.json")) > 20 and any(counts(tmp_path / "one.json").values())
    one, two = (np.asarray(Image.open(tmp_path / f"{n}.png")).astype(int) for n in ("one", "two"))
    assert one.shape == (270, 480, 3) and one.std() > 10
    # Times differ from run to run, the picture does not.
    assert np.abs(one - two)[40:200, :250].max() <= 2
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"box.obj", "one.png", "two.png", "one.json", "two.json"}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--offscreen", "--frames", 1, "--scene", "gone.glb"), 2, "gone.glb"),
        ((), 3, "no display"),
        (("--offscreen",), 2, "--frames"),
    ],
)
def test_a_mistake_is_one_line(
    box: Path, tmp_path: Path, words: tuple[object, ...], code: int, message: str
) -> None:
    scene = () if "--scene" in words else ("--scene", box)
    got, text = view(*words, *scene, "-q", cwd=tmp_path)
    assert got == code and message in text, text
    assert len(text.splitlines()) == 1
    assert os.listdir(tmp_path) == ["box.obj"]


def test_a_panel_is_found_in_any_letters() -> None:
    assert [find_panel(name) for name in ("heat map", "RAYS", None)] == ["Heat map", "Rays", None]
    with pytest.raises(UserError, match="no panel is named 'ray s'; there are Controls, Heat map"):
        find_panel("ray s")


def test_an_interface_library_that_cannot_be_loaded_is_one_line(box: Path, tmp_path: Path) -> None:
    message = "libXext.so.6: cannot open shared object file"
    # The working directory comes first on the path of `python -m`.
    (tmp_path / "imgui_bundle.py").write_text(f"raise ImportError({message!r})")
    code, text = view("--scene", box, "--offscreen", "--frames", 1, "-q", cwd=tmp_path)
    assert code == 3 and len(text.splitlines()) == 1
    assert message in text and "libxext6" in text


@pytest.mark.parametrize(("end", "code"), [("key", 0), ("interrupt", 130)])
def test_a_window_that_a_person_uses(box: Path, tmp_path: Path, end: str, code: int) -> None:
    for tool, package in (("xvfb-run", "xvfb"), ("xauth", "xauth"), ("xdotool", "xdotool")):
        if shutil.which(tool) is None:
            pytest.skip(f"no virtual display to use: the Debian package {package} is not installed")
    viewer = [sys.executable, "-m", "treeline", "view", "--scene", box, "-q"]
    viewer += ["--size", "480x270", "--render", "32x18"]
    screen = ("xvfb-run", "-a", "-s", "-screen 0 640x400x24")
    done = subprocess.run(
        [*screen, sys.executable, "-c", USER, end, *map(str, viewer)],
        cwd=tmp_path,
        env={**HEADLESS, "PYTHONPATH": str(ROOT), "TREELINE_CONFIG": str(tmp_path / "config")},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.stdout == f"code {code}\n", done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    picture = Image.open(next(tmp_path.glob("*window.png")))
    assert picture.size == (480, 270)
    assert (tmp_path / "config").exists() == (end != "interrupt")
    assert not list(tmp_path.rglob("imgui.ini"))
