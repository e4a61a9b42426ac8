"""How long input takes to the screen while the frame renders: a real window, driven by xdotool.

`xvfb-run -a -s "-screen 0 1280x800x24" python -m benchmarks.view_latency [--scene F] [--size WxH]`

Waits until the first picture is measured, then orbits for `--seconds` as a hand does: a drag of
60 small moves a second, there and back. Milliseconds from the input to the end of the present, as
the window measures them (engine/view/window.py), and where a turn of the loop goes: the `step` of
the frame, the `interface` on the host, and the rest, which is drawing and presenting it. Refused
without a display or xdotool. The load of the machine is part of the record: on a CPU adapter
everything else that runs makes these times longer.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.record import make_context, put_out
from engine.gpu.device import open_device
from engine.view import marks
from engine.view.window import Window
from passes.frame_options import FrameOptions
from passes.option_list import ViewSettings
from treeline.scenes import load
from treeline.view.app import Viewer
from treeline.view.session import ViewSession
from treeline.view.start import StartOptions, make_viewer

PATIENCE_S = 900.0
TITLE = "Treeline: latency"
# Moves of the hand: 30 to the right, 30 to the left, with the button held.
DRAG = """
window=$(xdotool search --name '^Treeline: latency' | head -1)
xdotool mousemove --window $window {x} {y}; sleep 0.3; xdotool mousedown 1
while :; do
  for step in $(seq 30); do xdotool mousemove_relative 3 1; sleep 0.016; done
  for step in $(seq 30); do xdotool mousemove_relative -- -3 -1; sleep 0.016; done
done
"""


def percentiles(values: list[float]) -> dict[str, float]:
    return {
        "median": float(np.median(values)),
        "p95": float(np.percentile(values, 95)),
        "max": float(np.max(values)),
    }


def wait_for_picture(viewer: Viewer) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not viewer.session.ready:
        viewer.window.draw_once(viewer.draw, viewer.between)
        viewer.work()
        if viewer.session.error is not None:
            raise SystemExit(viewer.session.error.message)
        if time.monotonic() > deadline:
            raise SystemExit("the frame was not measured in time")


def orbit(viewer: Viewer, seconds: float) -> dict[str, Any]:
    """Lets xdotool drag and takes the times of every turn of the loop."""
    x, y = (round(side) for side in marks.centre("picture"))
    hand = subprocess.Popen(["sh", "-c", DRAG.format(x=x, y=y)])
    times: dict[str, list[float]] = {"loop": [], "step": [], "interface": [], "rest": []}
    pictures, start_camera = viewer.session.version, viewer.control.camera()
    try:
        warm_until = time.monotonic() + 2.0
        end = warm_until + seconds
        viewer.window.latency_ms.clear()
        warm = False
        while time.monotonic() < end and not viewer.window.closed:
            if not warm and time.monotonic() >= warm_until:
                warm = True
                viewer.window.latency_ms.clear()
                pictures = viewer.session.version
                for part in times.values():
                    part.clear()
            start = time.perf_counter()
            viewer.window.draw_once(viewer.draw, viewer.between)
            drawn = time.perf_counter()
            viewer.work()
            done = time.perf_counter()
            times["loop"].append(1e3 * (done - start))
            times["step"].append(1e3 * (done - drawn))
            times["interface"].append(viewer.window.panel_ms)
            times["rest"].append(1e3 * (drawn - start) - viewer.window.panel_ms)
    finally:
        hand.terminate()
        hand.wait()
        subprocess.run(["xdotool", "mouseup", "1"], check=False)
    if np.array_equal(viewer.control.camera().transform, start_camera.transform):
        raise SystemExit("the camera did not move: does the window get the mouse?")
    latencies = list(viewer.window.latency_ms)
    return {
        "latency_ms": percentiles(latencies) | {"inputs": len(latencies)},
        "pictures_a_second": (viewer.session.version - pictures) / seconds,
        "loop_ms": {name: percentiles(part) for name, part in times.items()},
    }


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the embedded hall")] = None,
    size: Annotated[str, typer.Option(metavar="WxH", help="of the window")] = "960x540",
    seconds: Annotated[float, typer.Option(min=2.0, help="of orbiting")] = 20.0,
    panel: Annotated[str, typer.Option(help="that is open")] = "Controls",
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    out: Annotated[Path | None, typer.Option(help="record to write")] = None,
) -> None:
    """Prints the percentiles and writes the record."""
    if shutil.which("xdotool") is None:
        raise SystemExit("xdotool is not installed")
    width, height = (int(side) for side in size.split("x"))
    device = open_device(adapter)
    loaded = load(scene)
    name = "hall" if scene is None else scene.name
    window = Window(device, (width, height), TITLE, offscreen=False)
    settings = ViewSettings(frame=FrameOptions(0, 0, count=True))
    session = ViewSession(device, loaded, name, settings, (width, height))
    # As for a script: what a user keeps does not change what is measured.
    viewer = make_viewer(window, session, StartOptions((width, height), frames=1, panel=panel))
    wait_for_picture(viewer)
    before = os.getloadavg()[0]
    result = orbit(viewer, seconds)
    latency = result["latency_ms"]
    print(
        f"{name}: input to present median {latency['median']:.0f}, p95 {latency['p95']:.0f}, "
        f"max {latency['max']:.0f} ms of {latency['inputs']}; "
        f"{result['pictures_a_second']:.1f} pictures a second; "
        + ", ".join(f"{k} {v['median']:.1f}" for k, v in result["loop_ms"].items())
        + f" ms; load {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    )
    record = {
        "context": make_context(device),
        "scene": name,
        "scene_sha256": loaded.sha256,
        "window": [width, height],
        "picture": list(session.size),
        "panel": panel,
        "seconds": seconds,
        "load_before": before,
        "load_after": os.getloadavg()[0],
        **result,
    }
    session.close()
    window.close()
    put_out(record, out)


if __name__ == "__main__":
    typer.run(main)
