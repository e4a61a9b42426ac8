"""What the viewer itself costs the host: panels, overlays and reading statistics back, a frame.

`python -m benchmarks.view_cost [--scene F] [--size 1280x720] [--frames 60] [--blocks 3] [--out F]`

Drives an offscreen viewer, one frame after the other, with each panel in front, in four ways: at
rest, with a mouse that orbits the camera, with a mouse that rests over the panel, with one that
moves over it; and with boxes of levels 0 to 12 over the picture. `cost` is the host's time of one
frame, milliseconds, and the sum of
  `interface`  building the interface and encoding it,
  `picture`    lines and display pass: what they choose, write and encode,
  `submit`     the submission that holds both, and asking for its end,
  `read_back`  of the frames' statistics: copies, mapping, polling, unpacking.
The interface is built in every sixth frame (ten times a second: an offscreen window's time goes by
a 60th of a second a frame), in all while the mouse moves over the panel, and drawn again as it was
in the others; of a built one, those panels that show numbers that have changed, or all under the
mouse: `built` and `replayed` count them, `cost_built` and `cost_replayed` tell them apart.
Not in it: the frame's own passes (`step` is the session's step with their encoding and submission,
without `read_back`), and waiting for the GPU. `waits` are read-backs that a frame waited for.

Cases take turns, `--blocks` times; a case's record is its block with the lowest median, and the
medians of all its blocks. One block more, `paced` (`--no-paced`: none), sleeps between frames as a
window does that shows 60 of them a second: the same work costs more after a sleep, for clocks and
caches.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.record import make_context, put_out
from engine.gpu.device import open_device
from engine.view import marks
from engine.view.window import FRAMES_PER_SECOND, Window
from passes.frame_options import FrameOptions
from passes.option_list import ViewSettings
from treeline.cli.options import parse_size
from treeline.scenes import load
from treeline.view.app import Viewer
from treeline.view.session import ViewSession
from treeline.view.start import StartOptions, make_viewer

PATIENCE_S = 600.0
DEEPEST = 12  # level of boxes
HEAT = "nodes/reflection"  # shown while the heat map's panel is open
SETTLE_FRAMES = 20  # what a panel reads at first, it reads in these
PARTS = ("interface", "picture", "submit", "read_back")
WAYS = ("at rest", "camera moving", "mouse over the panel", "mouse moving over the panel")


@dataclass(frozen=True, slots=True)
class Case:
    """A panel in front, or the boxes; `way` is one of WAYS."""

    panel: str
    way: str
    boxes: bool = False

    def __str__(self) -> str:
        front = f"boxes to level {DEEPEST}" if self.boxes else self.panel
        return f"{front}, {self.way}"


def draw(viewer: Viewer) -> None:
    viewer.window.draw_once(viewer.draw, viewer.between)
    viewer.work()
    if viewer.session.error is not None:
        raise SystemExit(viewer.session.error.message)


def wait_until_measured(viewer: Viewer) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not viewer.session.ready:
        draw(viewer)
        if time.monotonic() > deadline:
            raise SystemExit("the frame was not measured in time")


@contextmanager
def mouse(viewer: Viewer, way: str) -> Iterator[Any]:
    """Gives what to do before each frame; the mouse is away from everything afterwards."""
    window = viewer.window
    left, top, right, bottom = marks.rectangles["picture"]
    x, y = 0.5 * (left + right), 0.5 * (top + bottom)

    def orbit(frame: int) -> None:
        turn = 0.07 * frame
        place = {"x": x + 0.3 * (right - left) * np.sin(turn), "y": y + 20 * np.sin(0.4 * turn)}
        window.send("pointer_move", **place, button=0, buttons=(1,))

    panel = right + 0.5 * (window.logical_size[0] - right)

    def wander(frame: int) -> None:
        window.send("pointer_move", x=panel + 40 * np.sin(0.3 * frame), y=y + 3 * (frame % 40))

    def stay(frame: int) -> None:
        pass

    if way == "camera moving":
        window.send("pointer_move", x=x, y=y)
        draw(viewer)
        window.send("pointer_down", x=x, y=y, button=1, buttons=(1,))
        yield orbit
        window.send("pointer_up", x=x, y=y, button=1)
    elif way == "mouse over the panel":
        window.send("pointer_move", x=panel, y=y)
        yield stay
    elif way == "mouse moving over the panel":
        yield wander
    else:
        yield stay
    window.send("pointer_move", x=-10.0, y=-10.0)
    draw(viewer)


def measure(viewer: Viewer, way: str, frames: int, *, paced: bool = False) -> dict[str, Any]:
    """One block of `frames` frames."""
    session, window = viewer.session, viewer.window
    device = session.device
    rows = []
    built = []
    with mouse(viewer, way) as move:
        for _ in range(4):
            draw(viewer)
        waits = device.forced_waits
        for frame in range(frames):
            move(frame)
            read = read_back_ms(session)
            before = window.pace.built
            start = time.perf_counter()
            window.draw_once(viewer.draw, viewer.between)
            drawn = time.perf_counter()
            viewer.work()
            done = time.perf_counter()
            picture, read = viewer.viewport.picture.host_ms, read_back_ms(session) - read
            parts = (window.panel_ms - picture, picture, window.submit_ms, read)
            rows.append((sum(parts), *parts, 1e3 * (done - drawn) - read, 1e3 * (done - start)))
            built.append(window.pace.built > before)
            if paced:
                time.sleep(max(0.0, start + 1 / FRAMES_PER_SECOND - time.perf_counter()))
        waits = device.forced_waits - waits
    names = ("cost", *PARTS, "step", "loop")
    table, was_built = np.array(rows), np.array(built)
    counts = {"built": int(was_built.sum()), "replayed": int((~was_built).sum())}
    apart = {
        f"cost_{name}": spread(table[chosen, 0])
        for name, chosen in (("built", was_built), ("replayed", ~was_built))
        if chosen.any()
    }
    return {"waits": waits, **counts, **apart} | {
        name: spread(values) for name, values in zip(names, table.T, strict=True)
    }


def read_back_ms(session: ViewSession) -> float:
    """So far, of the session's frames."""
    assert session.active is not None
    frames = session.active.supplied.frames
    return sum(f.read_back_ms for f in (frames.timed, frames.counted) if f is not None)


def spread(values: Any) -> dict[str, float]:
    low, median, high = np.percentile(values, (5, 50, 95)).tolist()
    return {"p5": low, "median": median, "p95": high, "mean": float(np.mean(values))}


def take(viewer: Viewer, case: Case) -> None:
    """Brings the case's panel to front and waits until it stands."""
    viewer.act(f"panel {case.panel}")
    viewer.act(f"show {HEAT if case.panel == 'Heat map' else 'picture'}")
    boxes = viewer.state.boxes
    viewer.state.boxes = replace(boxes, shown=case.boxes, low=0, high=DEEPEST if case.boxes else 0)
    for _ in range(SETTLE_FRAMES):
        draw(viewer)
    wait_until_measured(viewer)


def read_boxes(viewer: Viewer, panel: str) -> float:
    """Milliseconds until all boxes were read and drawn once."""
    started = time.perf_counter()
    take(viewer, Case(panel, WAYS[0], boxes=True))
    while viewer.viewport.boxes.stats.reading or not viewer.viewport.boxes.stats.total:
        draw(viewer)
    return 1e3 * (time.perf_counter() - started)


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the embedded hall")] = None,
    size: Annotated[str, typer.Option(metavar="WxH")] = "1280x720",
    frames: Annotated[int, typer.Option(min=10, help="of a block")] = 60,
    blocks: Annotated[int, typer.Option(min=1)] = 3,
    render: Annotated[
        str | None, typer.Option(metavar="WxH", help="of the frame; default: its place")
    ] = None,
    paced: Annotated[bool, typer.Option(help="measure once more at 60 frames a second")] = True,
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    out: Annotated[Path | None, typer.Option(help="record to write")] = None,
) -> None:
    """Prints one line a case and writes the record."""
    width, height = parse_size(size)
    device = open_device(adapter)
    loaded = load(scene)
    name = "hall" if scene is None else scene.name
    window = Window(device, (width, height), "cost", offscreen=True)
    settings = ViewSettings(frame=FrameOptions(0, 0, count=True))
    drawn = parse_size(render) if render is not None else None
    session = ViewSession(device, loaded, name, settings, drawn or (width, height))
    start = StartOptions((width, height), drawn, offscreen=True, frames=1)
    viewer = make_viewer(window, session, start)
    while session.prepared is None:
        draw(viewer)
    wait_until_measured(viewer)
    wide, high = session.size
    viewer.pick(wide // 2, high // 2)
    viewer.act("pin")

    cases = [Case(panel.title, way) for panel in viewer.panels for way in WAYS]
    cases += [Case("Structure", way, boxes=True) for way in WAYS[:2]]
    reading_ms = read_boxes(viewer, "Structure")
    found: dict[Case, list[dict[str, Any]]] = {case: [] for case in cases}
    for _ in range(blocks):  # in turns, so that a slow minute is not one case's
        for case in cases:
            take(viewer, case)
            row = measure(viewer, case.way, frames)
            if case.boxes:
                row["boxes"] = str(viewer.viewport.boxes.stats)
            found[case].append(row)
    slept: dict[Case, dict[str, Any]] = {}
    for case in cases if paced else ():
        take(viewer, case)
        slept[case] = measure(viewer, case.way, frames, paced=True)
    results = {}
    for case, rows in found.items():
        best = min(rows, key=lambda row: row["cost"]["median"])
        medians = [row["cost"]["median"] for row in rows]
        results[str(case)] = {**best, "median_of_blocks": medians}
        later = ""
        if case in slept:
            results[str(case)]["paced"] = slept[case]
            later = f"; paced {slept[case]['cost']['median']:.2f}"
        parts = ", ".join(f"{part} {best[part]['median']:.2f}" for part in PARTS)
        print(
            f"{case}: {best['built']} built, {best['replayed']} replayed, "
            f"{best['cost']['median']:.2f} ms, p95 {best['cost']['p95']:.2f}, mean "
            f"{best['cost']['mean']:.2f} ({parts}); blocks "
            f"{' '.join(f'{median:.2f}' for median in medians)}; step {best['step']['median']:.2f}"
            f"{later}"
        )
    session.close()
    window.close()
    record = {
        "context": make_context(device),
        "scene": name,
        "scene_sha256": loaded.sha256,
        "window": [width, height],
        "picture": [wide, high],
        "frames": frames,
        "blocks": blocks,
        "boxes_read_in_ms": reading_ms,
        "cases": results,
    }
    put_out(record, out)


if __name__ == "__main__":
    typer.run(main)
