"""Opens the viewer as a command line asks, for a person or for a script."""

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.gpu.device import Device, open_device
from engine.gpu.errors import CheckFailed, UserError
from engine.scene.scene import Scene
from engine.view.camera_text import camera_from_text
from engine.view.settings import Settings
from engine.view.window import Window
from passes.frame_options import FrameOptions
from passes.option_list import ViewSettings
from passes.outputs import frame_outputs
from treeline import structures
from treeline.budgets import Budget, check_budgets
from treeline.cli import interrupts
from treeline.measure import Progress
from treeline.outputs import whole_file
from treeline.pictures import save_png
from treeline.view.app import KEPT, Viewer
from treeline.view.panels import make_panels
from treeline.view.session import ViewSession
from treeline.view.structure_view import StructureView

if TYPE_CHECKING:
    from treeline.cli.options import Common

PATIENCE_S = 300.0  # that a script waits for a frame without anything having been drawn


@dataclass(frozen=True, slots=True)
class StartOptions:
    """What the command line says. `frames`: draw so many timed frames of the scene, and the
    counted one, then save `screenshot` and `stats` and end."""

    window_size: tuple[int, int]
    render_size: tuple[int, int] | None = None
    offscreen: bool = False
    frames: int | None = None
    screenshot: Path | None = None
    stats: Path | None = None
    panel: str | None = None
    show: str = "picture"
    pick: tuple[int, int] | None = None
    camera: Path | None = None
    counters: bool = True
    frame: dict[str, Any] = field(default_factory=dict)  # fields of FrameOptions
    out: Path = Path(".")
    budgets: tuple[Budget, ...] = ()


def run(
    common: "Common", device: Device, scene: Scene, start: StartOptions, progress: Progress
) -> None:
    """Builds, opens, and stays until the window is closed or the frames are drawn. UserError for
    what cannot be met; the window is not opened before the scene is loaded."""
    options = FrameOptions(0, 0, count=start.counters, **start.frame)
    check_output(options, start.show)
    check_budgets(start.budgets, options)
    start = replace(start, panel=find_panel(start.panel))
    camera = read_camera(start.camera)
    window = Window(
        device, start.window_size, f"Treeline: {common.scene_name}", offscreen=start.offscreen
    )
    try:
        # A person sees the window at once and the build's progress in it; who says where to build,
        # or runs a script, waits here.
        here = start.frames is not None or common.on != "auto"
        structure = structures.build_for(common, scene, progress, device=device) if here else None
        session = ViewSession(
            device,
            scene,
            common.scene_name,
            ViewSettings(frame=options, build=common.build_options(), group=common.group),
            start.render_size or start.window_size,
            structure=structure,
            new_device=lambda: open_device(common.adapter),
            cached=common.cache is not False,
        )
        try:
            viewer = make_viewer(window, session, start, camera)
            if start.frames is None:

                def work() -> None:
                    viewer.work()
                    interrupts.check()  # of a Ctrl-C that wgpu's callbacks would have swallowed

                window.run(viewer.draw, work, viewer.recover, viewer.between)
                viewer.close()
            else:
                draw_frames(viewer, start.frames, start.pick)
                save_results(viewer, start)
        finally:
            session.close()
    finally:
        window.close()


def make_viewer(
    window: Window, session: ViewSession, start: StartOptions, camera: Any = None
) -> Viewer:
    """With the user's settings, unless a script runs: its picture depends on nothing kept."""
    settings = Settings(KEPT)
    message = None if start.frames is not None else settings.load()
    viewer = Viewer(window, session, settings, start.out, start.render_size)
    if message:
        viewer.say(message)
    viewer.state.shown = start.show
    viewer.state.budgets = start.budgets
    if start.panel is not None:
        viewer.act(f"panel {start.panel}")
    if camera is not None:
        viewer.control.set_camera(camera)
    return viewer


def draw_frames(viewer: Viewer, frames: int, pick: tuple[int, int] | None) -> None:
    """Until the session has drawn `frames` timed frames and what else it is to measure. CheckFailed
    with the session's error where it has one, or where nothing is drawn any more."""
    session = viewer.session
    drawn, since = session.version, time.monotonic()
    while not (session.ready and session.samples >= frames):
        viewer.window.draw_once(viewer.draw, viewer.between)
        viewer.work()
        interrupts.check()
        if session.error is not None:
            raise CheckFailed(session.error.message)
        if viewer.window.closed:
            raise CheckFailed("the window was closed before the frames were drawn")
        if session.version != drawn:
            drawn, since = session.version, time.monotonic()
        elif session.idle or time.monotonic() - since > PATIENCE_S:
            raise CheckFailed(f"{session.samples} frames were drawn, not {frames}")
    if pick is not None:
        viewer.pick(*pick)
    # Once for what has arrived, once for what panels show of it.
    viewer.refresh()
    for _ in range(3):
        viewer.window.draw_once(viewer.draw)


def save_results(viewer: Viewer, start: StartOptions) -> None:
    if start.screenshot is not None:
        with whole_file(start.screenshot) as path:
            save_png(path, viewer.window.picture())
    if start.stats is not None:
        text = json.dumps(viewer.session.document(), indent=2, allow_nan=False, ensure_ascii=False)
        with whole_file(start.stats) as path:
            path.write_text(text + "\n", encoding="utf-8")


def check_output(options: FrameOptions, name: str) -> None:
    names = [output.name for output in frame_outputs(options)]
    if name not in names:
        raise UserError(f"the frame has no output '{name}'; there are {', '.join(names)}")


def find_panel(name: str | None) -> str | None:
    """The title that `name` is, in large or small letters; None: no panel is asked for. UserError
    for one that there is not."""
    if name is None:
        return None
    titles = {panel.title.lower(): panel.title for panel in make_panels(StructureView())}
    if name.lower() not in titles:
        raise UserError(f"no panel is named '{name}'; there are {', '.join(titles.values())}")
    return titles[name.lower()]


def read_camera(path: Path | None) -> Any:
    """The camera in a file as the viewer copies it; None without a file."""
    if path is None:
        return None
    try:
        return camera_from_text(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a camera as text") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
