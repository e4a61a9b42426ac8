"""What the viewer's commands do. Keys and menus name them (treeline/view/commands.py)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from imgui_bundle import imgui

from engine.gpu.errors import UserError
from engine.view.camera_control import CameraControl
from engine.view.window import Window
from passes.outputs import Output
from treeline.view import export
from treeline.view.picture_panel import Picture
from treeline.view.session import ViewSession
from treeline.view.structure_actions import focus_box, hide_selected, reset, show_all
from treeline.view.time_line import TimeLine
from treeline.view.view_state import ViewState


class Acting(Protocol):
    """What commands act on: the viewer."""

    session: ViewSession
    state: ViewState
    window: Window
    time_line: TimeLine
    folder: Path
    quit: bool

    @property
    def picture(self) -> Picture: ...

    @property
    def control(self) -> CameraControl: ...

    @property
    def outputs(self) -> Sequence[Output]: ...

    def say(self, text: str) -> None: ...

    def toggle_fly(self) -> None: ...

    def find_option(self) -> None: ...


def make_actions(viewer: Acting) -> dict[str, Callable[[], object]]:
    """Command -> what it does; "show ..." and "panel ..." and the camera's are not among them."""
    state, session = viewer.state, viewer.session
    return {
        "help": lambda: setattr(state, "show_help", not state.show_help),
        "quit": lambda: setattr(viewer, "quit", True),
        "screenshot": lambda: save_screenshot(viewer),
        "save picture": lambda: save_picture(viewer),
        "save report": lambda: save_report(viewer),
        "save capture": lambda: save_capture(viewer),
        "copy camera": lambda: copy_camera(viewer),
        "paste camera": lambda: viewer.control.from_text(imgui.get_clipboard_text()),
        "find option": viewer.find_option,
        "next output": lambda: turn_output(viewer, 1),
        "previous output": lambda: turn_output(viewer, -1),
        "auto range": lambda: setattr(state, "heat_range", None),
        "difference": lambda: setattr(state, "difference", not state.difference),
        "counters": lambda: turn_counters(viewer),
        "pin": lambda: pin(viewer),
        "swap": lambda: swap(viewer),
        "unpick": lambda: unpick(viewer),
        "focus": lambda: focus(viewer),
        "hide": lambda: hide_selected(session, state),
        "show all": lambda: show_all(session, state),
        "reset": lambda: reset_view(viewer),
        "boxes": lambda: setattr(state.boxes, "shown", not state.boxes.shown),
        "deeper boxes": lambda: step_boxes(viewer, 1),
        "higher boxes": lambda: step_boxes(viewer, -1),
        "scene camera": lambda: scene_camera(viewer),
        "fly": viewer.toggle_fly,
        "camera path": lambda: viewer.time_line.follow_path(not viewer.time_line.follows_path),
        "play": lambda: viewer.time_line.toggle(),
        "next frame": lambda: viewer.time_line.step(1),
        "previous frame": lambda: viewer.time_line.step(-1),
    }


def save_screenshot(viewer: Acting) -> None:
    path = export.next_path(viewer.folder, "window.png")
    viewer.say(f"saved {export.write_picture(path, viewer.window.picture())}")


def save_picture(viewer: Acting) -> None:
    """The picture without the interface; a heat map with its legend."""
    pixels = viewer.picture.pixels(viewer.state)
    name = viewer.state.shown.replace("/", "-")
    path = export.next_path(viewer.folder, f"{name}.png")
    viewer.say(f"saved {export.write_picture(path, pixels)}")


def save_report(viewer: Acting) -> None:
    path = export.next_path(viewer.folder, "report.json")
    viewer.say(f"saved {export.write_report(path, viewer.session.document())} and .csv")


def save_capture(viewer: Acting) -> None:
    path = export.next_path(viewer.folder, "capture.npz")
    viewer.say(f"saved {export.write_capture(path, viewer.session)}")


def copy_camera(viewer: Acting) -> None:
    imgui.set_clipboard_text(viewer.control.text())
    viewer.say("the camera is on the clipboard")


def turn_output(viewer: Acting, step: int) -> None:
    names = [output.name for output in viewer.outputs]
    shown = viewer.state.shown
    at = names.index(shown) if shown in names else 0
    viewer.state.shown = names[(at + step) % len(names)]


def turn_counters(viewer: Acting) -> None:
    settings = viewer.session.settings
    frame = replace(settings.frame, count=not settings.frame.count)
    viewer.session.change(replace(settings, frame=frame))


def pin(viewer: Acting) -> None:
    viewer.session.pin()
    viewer.picture.keep_planes(viewer.session)
    viewer.say("A is pinned: what you change now is B, Tab switches")


def swap(viewer: Acting) -> None:
    if viewer.session.baseline is None:
        raise UserError("no baseline is pinned: P pins what is shown")
    viewer.picture.keep_planes(viewer.session)
    viewer.session.swap()
    viewer.say(f"this is {viewer.session.label}")


def unpick(viewer: Acting) -> None:
    viewer.state.picked = viewer.state.selected = None


def focus(viewer: Acting) -> None:
    """On the selected node, or on what was picked; without either on the whole scene."""
    box = focus_box(viewer.session, viewer.state)
    viewer.control.focus(viewer.control.box if box is None else np.asarray(box))


def reset_view(viewer: Acting) -> None:
    reset(viewer.session, viewer.state)
    unpick(viewer)
    scene_camera(viewer)


def scene_camera(viewer: Acting) -> None:
    """The scene's own camera, which stands."""
    viewer.time_line.follow_path(False)
    viewer.control.set_camera(viewer.session.scene.camera)


def step_boxes(viewer: Acting, step: int) -> None:
    """Both ends of the range move; boxes that were off come on."""
    boxes = viewer.state.boxes
    if boxes.shown:
        low = max(boxes.low + step, 0)
        boxes.low, boxes.high = low, low + (boxes.high - boxes.low)
    boxes.shown = True
