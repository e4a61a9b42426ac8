"""What the viewer itself costs: panels, overlays and reading statistics back, a frame.

`python -m benchmarks.view_cost [--scene F] [--size 1280x720] [--frames 300] [--out F.json]`

Drives an offscreen viewer with each panel in front, then with boxes of levels 0 to 12 over the
picture, and takes the host's time of each part of a frame: building and encoding the interface
(`panels`), display pass and overlay (`picture`), the session's step (`step`: encoding and
submitting the frame, taking what has arrived of statistics), and all of it (`loop`). `waits` are
read-backs that a frame waited for. Milliseconds, medians and 95th percentiles.
"""

import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.record import make_context, put_out
from engine.gpu.device import open_device
from engine.view.window import Window
from passes.frame_options import FrameOptions
from passes.option_list import ViewSettings
from treeline.scenes import load
from treeline.view.app import Viewer
from treeline.view.session import ViewSession
from treeline.view.start import StartOptions, make_viewer

PATIENCE_S = 600.0
DEEPEST = 12  # level of boxes


def wait_until_measured(viewer: Viewer) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not viewer.session.ready:
        viewer.window.draw_once(viewer.draw)
        viewer.work()
        if viewer.session.error is not None:
            raise SystemExit(viewer.session.error.message)
        if time.monotonic() > deadline:
            raise SystemExit("the frame was not measured in time")


def measure(viewer: Viewer, frames: int, *, orbit: bool) -> dict[str, Any]:
    """`frames` frames of the window. With `orbit` the camera moves in each of them."""
    device = viewer.session.device
    times: dict[str, list[float]] = defaultdict(list)
    waits = device.forced_waits
    for _ in range(frames):
        if orbit:
            viewer.control.drag(1.0, 0.0)
        start = time.perf_counter()
        viewer.window.draw_once(viewer.draw)
        drawn = time.perf_counter()
        viewer.work()
        done = time.perf_counter()
        # What the picture took is part of building the interface.
        times["picture"].append(viewer.picture.host_ms)
        times["panels"].append(viewer.window.panel_ms - viewer.picture.host_ms)
        times["step"].append(1e3 * (done - drawn))
        times["loop"].append(1e3 * (done - start))
    return {
        "waits": device.forced_waits - waits,
        **{
            name: {"median": float(np.median(v)), "p95": float(np.percentile(v, 95))}
            for name, v in times.items()
        },
    }


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the embedded hall")] = None,
    size: Annotated[str, typer.Option(metavar="WxH")] = "1280x720",
    frames: Annotated[int, typer.Option(min=10)] = 300,
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    out: Annotated[Path | None, typer.Option(help="record to write")] = None,
) -> None:
    """Prints one line a panel and writes the record."""
    width, height = (int(side) for side in size.split("x"))
    device = open_device(adapter)
    loaded = load(scene)
    name = "hall" if scene is None else scene.name
    window = Window(device, (width, height), "cost", offscreen=True)
    settings = ViewSettings(frame=FrameOptions(0, 0, count=True))
    session = ViewSession(device, loaded, name, settings, (width, height))
    viewer = make_viewer(window, session, StartOptions((width, height), offscreen=True, frames=1))
    while session.prepared is None and session.error is None:
        window.draw_once(viewer.draw)
        viewer.work()
    wait_until_measured(viewer)
    wide, high = session.size
    viewer.pick(wide // 2, high // 2)
    viewer.act("pin")
    results: dict[str, Any] = {}
    for panel in viewer.panels:
        viewer.act(f"panel {panel.title}")
        for _ in range(20):  # what it reads at first, it reads here
            window.draw_once(viewer.draw)
            viewer.work()
        for orbit in (False, True):
            wait_until_measured(viewer)
            row = measure(viewer, frames, orbit=orbit)
            results[f"{panel.title}{', camera moving' if orbit else ''}"] = row
    viewer.act("panel Structure")
    viewer.state.boxes = replace(viewer.state.boxes, shown=True, low=0, high=DEEPEST)
    started = time.perf_counter()
    while viewer.viewport.boxes.stats.reading or not viewer.viewport.boxes.stats.total:
        window.draw_once(viewer.draw)
        viewer.work()
    reading_ms = 1e3 * (time.perf_counter() - started)
    for orbit in (False, True):
        row = measure(viewer, frames, orbit=orbit)
        row["boxes"] = str(viewer.viewport.boxes.stats)
        results[f"boxes to level {DEEPEST}{', camera moving' if orbit else ''}"] = row
    for label, row in results.items():
        parts = ", ".join(f"{k} {row[k]['median']:.2f}" for k in ("panels", "picture", "step"))
        print(f"{label}: {parts} ms; loop p95 {row['loop']['p95']:.1f} ms, {row['waits']} waits")
    record = {
        "context": make_context(device),
        "scene": name,
        "scene_sha256": loaded.sha256,
        "window": [width, height],
        "picture": list(session.size),
        "frames": frames,
        "boxes_read_in_ms": reading_ms,
        "parts": results,
    }
    session.close()
    window.close()
    put_out(record, out)


if __name__ == "__main__":
    typer.run(main)
