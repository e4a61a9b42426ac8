"""Real processes: Ctrl-C, termination, windows, pipes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ImageGrab

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]
Process = Callable[..., "subprocess.Popen[str]"]

ROOT = Path(__file__).resolve().parents[2]
CONSOLE_ENTRY = "from treeline.cli import main; main()"  # what the installed script does


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_report_leaves_nothing(
    box: Path, tmp_path: Path, number: signal.Signals, code: int, process: Process
) -> None:
    out = tmp_path / "out"
    child = process(
        *("report", "--scene", box, "--size", "64x64", "--frames", 100000, "--out", out)
    )
    assert child.stderr is not None
    for line in child.stderr:
        if "timing" in line:
            break
    time.sleep(0.5)
    child.send_signal(number)
    stdout, stderr = child.communicate(timeout=120)
    assert child.returncode == code
    assert stdout == "" and "Traceback" not in stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["box.obj"]


@pytest.mark.parametrize("module", ["typer", "numpy._core.multiarray", "treeline.cli.report"])
@pytest.mark.parametrize("start", [("-m", "treeline"), ("-c", CONSOLE_ENTRY)])
def test_interrupted_while_it_starts(
    start: tuple[str, str], module: str, box: Path, tmp_path: Path
) -> None:
    """Imports take longest then; Python says when one has ended. The command never ends itself."""
    command = ("report", "--quiet", "--scene", box, "--frames", "100000", "--out", tmp_path / "out")
    words = (sys.executable, "-X", "importtime", *start, *command)
    child = subprocess.Popen(words, cwd=ROOT, stdout=-1, stderr=-1, text=True)
    assert child.stdout is not None and child.stderr is not None
    with child.stdout, child.stderr:
        for line in child.stderr:
            if line.split("|")[-1].strip() == module:
                break
        child.send_signal(signal.SIGINT)
        told = [line for line in child.stderr if not line.startswith("import time:")]
        assert child.wait(timeout=120) == 130
        assert told == [] and child.stdout.read() == ""


def test_plain_text_where_nobody_looks(box: Path, process: Process) -> None:
    child = process("inspect", "--scene", box, env={**os.environ, "NO_COLOR": "1"})
    stdout, stderr = child.communicate(timeout=120)
    assert child.returncode == 0
    assert "\x1b" not in stdout + stderr


def test_a_mistake_in_a_real_process_is_one_line(tmp_path: Path, process: Process) -> None:
    child = process("inspect", "--scene", tmp_path / "gone.glb")
    stdout, stderr = child.communicate(timeout=120)
    assert child.returncode == 2
    assert stdout == ""
    assert [line for line in stderr.splitlines() if "gone.glb" in line] == [
        stderr.strip().splitlines()[-1]
    ]


def test_triangle_example_in_a_window(tmp_path: Path, process: Process) -> None:
    if not (shutil.which("Xvfb") and shutil.which("xauth")):
        pytest.skip("a window needs a display: xvfb and xauth are not installed")
    # -displayfd: the server picks a free display and says which.
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-screen", "0", "1400x800x24"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        display = f":{server.stdout.readline().strip()}"
        child = process("example", "triangle", env={**os.environ, "DISPLAY": display})
        assert child.stderr is not None
        assert "window is open" in child.stderr.readline()
        deadline = time.monotonic() + 120
        shown = np.zeros((800, 1400, 3), int)
        while shown[640, 330, 0] < 100:  # the red corner
            assert child.poll() is None and time.monotonic() < deadline, "nothing was drawn"
            time.sleep(0.2)
            shown = np.asarray(ImageGrab.grab(xdisplay=display)).astype(int)
        assert shown[640, 330].argmax() == 0
        assert shown[640, 950].argmax() == 1
        assert shown[90, 640].argmax() == 2
        child.send_signal(signal.SIGINT)
        stdout, stderr = child.communicate(timeout=120)
        assert child.returncode == 130, stderr
        assert "Traceback" not in stderr
    finally:
        server.terminate()
        server.wait(timeout=60)
