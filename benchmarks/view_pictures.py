"""A picture of every panel of the viewer, into docs/.

`python -m benchmarks.view_pictures [--scene F] [--size 1280x720] [--out docs]`

Draws the viewer offscreen with each panel in front: a heat map beside the heat panel, a picked
pixel with its rays beside the inspector, boxes beside the structure, a changed option against a
pinned baseline beside the controls. The same scene and seed give the same pictures on one adapter,
but for the times in them.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from PIL import Image

from engine.gpu.device import open_device
from engine.view.window import Window
from passes.frame_options import FrameOptions
from passes.option_list import ViewSettings
from treeline.outputs import whole_folder
from treeline.scenes import load
from treeline.view.app import Viewer
from treeline.view.session import ViewSession
from treeline.view.start import StartOptions, draw_frames, make_viewer

QUALITY = 90  # of the JPEGs
# That plots and medians have; a CPU adapter draws a frame in seconds.
TIMED_FRAMES, CPU_TIMED_FRAMES = 120, 6
PATIENCE_S = 900.0


def settle(viewer: Viewer, frames: int) -> None:
    """Until what is asked for is drawn and measured."""
    draw_frames(viewer, frames, None)


def heat(viewer: Viewer) -> None:
    viewer.act("show nodes/reflection")


def structure(viewer: Viewer) -> None:
    viewer.act("show picture")
    width, height = viewer.session.size
    viewer.pick(int(0.38 * width), int(0.56 * height))
    viewer.state.boxes.shown = True
    viewer.state.boxes.low, viewer.state.boxes.high = 1, 2


def ray(viewer: Viewer) -> None:
    viewer.state.boxes.shown = False
    width, height = viewer.session.size
    viewer.pick(int(0.78 * width), int(0.78 * height))
    for _ in range(4):
        viewer.window.draw_once(viewer.draw, viewer.between)
    viewer.act("ray after")
    for _ in range(6):
        viewer.act("ray step on")


def controls(viewer: Viewer) -> None:
    """Another structure against a pinned baseline, and the difference in nodes."""
    viewer.act("unpick")
    viewer.act("pin")
    settings = viewer.session.settings
    viewer.session.change(replace(settings, build=replace(settings.build, builder="lbvh")))
    viewer.act("show nodes/reflection")
    viewer.act("difference")


def plain(viewer: Viewer) -> None:
    viewer.act("show picture")


# In this order: the last one changes the structure.
SCENES: dict[str, Callable[[Viewer], None]] = {
    "Passes": plain,
    "Rays": plain,
    "Objects": plain,
    "Heat map": heat,
    "Instances": plain,
    "Structure": structure,
    "Ray": ray,
    "Controls": controls,
}


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the embedded hall")] = None,
    size: Annotated[str, typer.Option(metavar="WxH")] = "1280x720",
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    out: Annotated[Path, typer.Option(help="folder")] = Path("docs"),
) -> None:
    """Prints the files."""
    width, height = (int(side) for side in size.split("x"))
    device = open_device(adapter)
    name = "hall" if scene is None else scene.name
    window = Window(device, (width, height), f"Treeline: {name}", offscreen=True)
    settings = ViewSettings(frame=FrameOptions(0, 0, count=True))
    session = ViewSession(device, load(scene), name, settings, (width, height))
    viewer = make_viewer(window, session, StartOptions((width, height), offscreen=True, frames=1))
    titles = [panel.title for panel in viewer.panels]
    missing = [title for title in titles if title not in SCENES]
    if missing:
        raise SystemExit(f"panels without a picture: {', '.join(missing)}")
    deadline = time.monotonic() + PATIENCE_S
    while session.prepared is None and time.monotonic() < deadline:
        viewer.window.draw_once(viewer.draw, viewer.between)
        viewer.work()
    frames = CPU_TIMED_FRAMES if device.info.is_cpu else TIMED_FRAMES
    settle(viewer, frames)
    with whole_folder(out) as folder:
        for title in [title for title in SCENES if title in titles]:
            viewer.act(f"panel {title}")
            SCENES[title](viewer)
            settle(viewer, frames)
            file = f"view-{title.lower().replace(' ', '-')}.jpg"
            Image.fromarray(window.picture()).save(folder / file, quality=QUALITY)
            print(out / file, flush=True)
    session.close()
    window.close()


if __name__ == "__main__":
    typer.run(main)
