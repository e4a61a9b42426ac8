"""The viewer in an offscreen window, driven by events: every command by its key and by its menu,
every output, every panel. What is listed somewhere is tested because it is listed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui

from engine.view import marks
from engine.view.camera_control import FlyControl
from engine.view.shortcuts import CAMERA_SHORTCUTS, Shortcut
from passes.outputs import frame_outputs
from treeline.view.commands import COMMANDS
from treeline.view.menus import MENUS

ALL = (*COMMANDS, *CAMERA_SHORTCUTS)
KEYED = [entry for entry in ALL if entry.key and not entry.held and entry.action != "quit"]


@pytest.fixture(scope="module")
def person(open_viewer: Callable[..., Any]) -> Any:
    person = open_viewer()
    person.settle()
    return person


def prepare(person: Any, action: str) -> None:
    """A state in which every command has something to do: a pinned baseline, a picked pixel whose
    second ray stands at a step in the middle, and a small box overlay. What stands so already is
    left alone."""
    viewer, state, session = person.viewer, person.state, person.session
    if isinstance(viewer.control, FlyControl):
        viewer.toggle_fly()
    if not session.settings.frame.count:
        viewer.act("counters")
    state.show_help = state.difference = False
    state.shown, state.heat_range = "base_color", (0.0, 7.0)
    state.boxes.shown, state.boxes.low, state.boxes.high = True, 1, 1
    viewer.time_line.follow_path(False)
    if (viewer.time_line.clip, viewer.time_line.transport.time) != ("slide", 0.5):
        viewer.time_line.choose("slide")
        viewer.time_line.scrub(0.5)
    if imgui.get_io().want_text_input:
        person.press("Escape")
        person.frames(2)
    if session.hidden:
        viewer.act("show all")
    if not np.array_equal(viewer.control.camera().transform, session.scene.camera.transform):
        viewer.control.set_camera(session.scene.camera)
    if action in ("scene camera", "paste camera"):
        imgui.set_clipboard_text(viewer.control.text())
        viewer.control.drag(30.0, 5.0)
    person.settle()
    if session.baseline is None:
        viewer.act("pin")
    if state.picked is None:
        viewer.pick(session.size[0] // 2, session.size[1] // 2)
        person.frames(4)
    state.selected = state.picked.path[-1]
    state.ray_index, state.ray_step = 1, 1
    if action == "show all":
        viewer.act("hide")
    if action == "copy camera":
        imgui.set_clipboard_text("nothing")
    person.frames(2)


def traces(person: Any) -> dict[str, Any]:
    """All that a command may change, as values that compare."""
    viewer, state, session = person.viewer, person.state, person.session
    return {
        "shown": state.shown,
        "range": state.heat_range,
        "difference": state.difference,
        "help": state.show_help,
        "boxes": (state.boxes.shown, state.boxes.low, state.boxes.high),
        "picked": id(state.picked),
        "selected": state.selected,
        "ray": (state.ray_index, state.ray_step),
        "hidden": session.hidden,
        "settings": session.settings,
        "label": session.label,
        "baseline": id(session.baseline),
        "camera": viewer.control.camera().transform.tobytes(),
        "control": type(viewer.control),
        "clock": (viewer.time_line.transport.time, viewer.time_line.transport.playing),
        "files": sorted(path.name for path in viewer.folder.iterdir()),
        "clipboard": imgui.get_clipboard_text(),
        "typing": imgui.get_io().want_text_input,
    }


# Command -> which of the traces it is to change, and no other; the rest changes the camera.
EFFECTS: dict[str, set[str]] = {
    "help": {"help"},
    "screenshot": {"files"},
    "save picture": {"files"},
    "save report": {"files"},
    "save capture": {"files"},
    "copy camera": {"clipboard"},
    "next output": {"shown"},
    "previous output": {"shown"},
    "auto range": {"range"},
    "difference": {"difference"},
    "find option": {"typing"},
    "counters": {"settings"},
    "pin": {"baseline"},
    "swap": {"label", "baseline"},
    "ray step back": {"ray"},
    "ray step on": {"ray"},
    "ray first step": {"ray"},
    "ray last step": {"ray"},
    "ray hit": {"ray"},
    "ray before": {"ray"},
    "ray after": {"ray"},
    "unpick": {"picked", "selected"},
    "hide": {"hidden", "selected"},
    "show all": {"hidden"},
    "reset": {"picked", "selected", "boxes", "hidden"},
    "boxes": {"boxes"},
    "deeper boxes": {"boxes"},
    "higher boxes": {"boxes"},
    "play": {"clock"},
    "next frame": {"clock"},
    "previous frame": {"clock"},
    "fly": {"control"},
}


def expected(action: str) -> set[str]:
    return EFFECTS.get(action, {"shown"} if action.startswith("show ") else {"camera"})


@pytest.mark.parametrize("entry", KEYED, ids=lambda entry: entry.action)
def test_every_key_does_what_its_command_says_and_no_more(person: Any, entry: Shortcut) -> None:
    prepare(person, entry.action)
    before = traces(person)
    person.press(entry.key, entry.modifiers)
    after = traces(person)
    changed = {name for name in before if before[name] != after[name]}
    assert changed & expected(entry.action), person.state.messages[-1:]
    # What follows from another choice may follow, but no other thing happens.
    assert changed <= expected(entry.action) | {"ray", "picked", "selected"}, changed


def test_every_command_is_in_a_menu_or_a_key_of_a_camera(person: Any) -> None:
    in_menus = {command for menu in MENUS.values() for command in menu if command is not None}
    shown = {f"show {output.name}" for output in frame_outputs(person.session.settings.frame)}
    lists = in_menus | shown | {entry.action for entry in CAMERA_SHORTCUTS}
    # These stand in other places: a click, PageUp and PageDown, and what the time line has.
    places = {"pick", "next output", "previous output", "auto range"}
    places |= {"play", "next frame", "previous frame"}
    assert {entry.action for entry in COMMANDS} - lists == places


def test_every_menu_item_gives_its_command(person: Any, monkeypatch: Any) -> None:
    """What that does is the test of its key."""
    prepare(person, "show picture")
    asked: list[str] = []
    monkeypatch.setattr(person.viewer, "act", asked.append)
    for menu, commands in MENUS.items():
        for command in commands:
            if command is not None:
                person.click(f"menu.{menu}")
                person.click(f"menu.{command}")
                assert asked == [command]
                asked.clear()


def test_tab_switches_and_does_not_open_a_slider(person: Any) -> None:
    prepare(person, "swap")
    person.click("tab.Controls")
    label = person.session.label
    for _ in range(2):
        person.press("Tab")
        assert not imgui.get_io().want_text_input
    assert person.session.label == label


def test_every_output_is_in_the_menu_and_gives_a_picture_of_its_own(person: Any) -> None:
    prepare(person, "show picture")
    person.state.heat_range, person.state.boxes.shown = None, False
    person.viewer.act("unpick")
    pictures: dict[str, Any] = {}
    for output in frame_outputs(person.session.settings.frame):
        person.viewer.act(f"show {output.name}")
        person.frames(6)
        assert person.viewer.picture.output == output
        assert ("caption" in marks.rectangles) == (output.name != "picture")
        pictures[output.name] = person.picture()
    ends = [pixels.reshape(-1, 3).std(0).max() for pixels in pictures.values()]
    flat = [name for name, spread in zip(pictures, ends, strict=True) if spread < 1]
    # The scene has no texture that cuts holes.
    assert set(flat) <= {f"any_hits/{ray}" for ray in person.session.counted.rays}
    assert np.abs(pictures["nodes/reflection"] - pictures["nodes/shadow"]).max() > 50


def test_every_panel_opens_by_its_tab_at_once_and_by_the_menu(person: Any) -> None:
    prepare(person, "show picture")
    for panel in person.viewer.panels:
        person.click(f"tab.{panel.title}", slowly=False)
        assert person.viewer.settings["panel"] == panel.title
    for panel in reversed(person.viewer.panels):
        person.click("menu.View")
        person.click(f"menu.panel.{panel.title}")
        assert person.viewer.settings["panel"] == panel.title


def test_all_tabs_are_seen_in_a_small_window(person: Any) -> None:
    tabs = [marks.rectangles[f"tab.{panel.title}"] for panel in person.viewer.panels]
    assert tabs[-1][2] <= person.window.logical_size[0]
    assert all(a[2] <= b[0] + 1 for a, b in zip(tabs, tabs[1:], strict=False))
    widths: list[float] = []  # of the names, which are whole

    def measure() -> None:
        widths[:] = [imgui.calc_text_size(panel.title).x for panel in person.viewer.panels]

    person.window.draw_once(measure)
    assert all(tab[2] - tab[0] >= width for tab, width in zip(tabs, widths, strict=True))


def test_panels_are_built_for_what_they_show_and_no_more(person: Any) -> None:
    viewer, pace = person.viewer, person.window.pace
    quiet = viewer.tabs.quiet
    person.pointer("pointer_move", -10.0, -10.0)

    def built(panel: str) -> tuple[int, int, int]:
        """Frames of a second that have built the panel, the menu bar, and anything."""
        viewer.act(f"panel {panel}")
        person.frames(10)
        person.until(lambda: person.session.idle)
        person.frames(30)
        before = (quiet.built, viewer.menus.quiet.built, pace.built)
        person.frames(60)
        now = (quiet.built, viewer.menus.quiet.built, pace.built)
        return tuple(b - a for a, b in zip(before, now, strict=True))

    assert built("Structure") == (0, 0, 10)
    assert built("Passes") == (10, 0, 10)
    panel = next(p for p in viewer.panels if p.title == "Instances")
    assert built("Instances") == (0, 0, 10)
    assert panel._count_means() == len(panel._mean) > 0
    viewer.state.shown = "depth" if viewer.state.shown != "depth" else "normal"
    before = quiet.built
    person.frames(1)
    assert quiet.built == before + 1, "what a hand changes is seen in the next frame"


def test_a_mouse_that_rests_over_a_panel_asks_for_no_frames(person: Any) -> None:
    person.viewer.act("panel Structure")
    person.frames(4)
    person.until(lambda: person.session.idle)
    x, y = marks.centre("structure.boxes")
    person.pointer("pointer_move", x, y)
    person.frames(30)
    pace, quiet = person.window.pace, person.viewer.tabs.quiet
    before = (pace.built, quiet.built)
    person.frames(60)
    assert (pace.built - before[0], quiet.built - before[1]) == (10, 10)
    person.pointer("pointer_move", x + 1, y)
    person.frames(3)
    assert quiet.built == before[1] + 13
    shown = person.state.boxes.shown
    person.pointer("pointer_down", x + 1, y, 1)
    person.frames(1)
    person.pointer("pointer_up", x + 1, y, 1)
    person.frames(1)
    assert person.state.boxes.shown is not shown


def test_a_click_picks_what_is_under_it_and_its_node(person: Any) -> None:
    prepare(person, "pick")
    person.viewer.act("unpick")
    person.frames(2)
    person.click("picture")
    width, height = person.session.size
    picked = person.state.picked
    assert abs(picked.pixel[0] - width // 2) <= 1 and abs(picked.pixel[1] - height // 2) <= 1
    assert person.state.selected == picked.path[-1]
    person.frames(10)
    assert person.state.picked is picked  # also where the scene moves


def test_mouse_moves_the_camera_and_panels_do_not(person: Any) -> None:
    prepare(person, "orbit")
    places = [person.viewer.control.camera()]
    for button in (1, 2, 3):
        person.drag("picture", 20.0, 15.0, button)
        places.append(person.viewer.control.camera())
    person.wheel("picture", -100.0)
    places.append(person.viewer.control.camera())
    for one, other in zip(places, places[1:], strict=False):
        assert not np.array_equal(one.transform, other.transform)
    person.drag("tab.Rays", 20.0)
    assert person.viewer.control.camera() is places[-1]
    person.settle()
    assert person.session.camera is places[-1]


def test_flying_by_held_keys(person: Any) -> None:
    prepare(person, "fly")
    person.press("v")
    person.window.send("key_down", key="w")
    person.frames(3)
    first = person.viewer.control.camera().position
    person.frames(3)
    person.window.send("key_up", key="w")
    person.frames()
    assert np.linalg.norm(person.viewer.control.camera().position - first) > 0


def test_the_time_line(person: Any) -> None:
    prepare(person, "play")
    person.click("time.play")
    person.frames(5)
    assert person.viewer.time_line.transport.playing
    assert person.session.time != 0.5
    person.click("time.play")
    stood = person.viewer.time_line.transport.time
    person.click("time.on")
    assert person.viewer.time_line.transport.time != stood and not person.session.moving
    person.click("clip")
    person.click("clip.as in the file")
    assert person.session.clip is None


def test_the_camera_path_by_the_time_line(person: Any) -> None:
    prepare(person, "play")
    viewer, path = person.viewer, person.session.scene.camera_path
    line = viewer.time_line
    person.press("g")
    person.frames(2)
    assert line.follows_path and line.transport.duration == 2.0 and line.transport.time == 0.5
    assert person.session.camera.same_as(path.at(1.5))  # its first key is at 1 s
    line.scrub(1.5)  # the clip of a second has begun again
    person.frames(2)
    assert person.session.camera.same_as(path.at(2.5)) and person.session.time == 1.5
    person.drag("picture", 40.0)  # a hand takes the camera
    person.frames(2)
    assert not line.follows_path and line.transport.duration == 1.0
    assert not person.session.camera.same_as(path.at(2.5))
    person.press("g")
    person.frames(2)
    person.viewer.act("view top")
    person.frames(2)
    assert not line.follows_path
    person.click("time.path")
    person.frames(2)
    assert line.follows_path
    person.press("Home")
    person.frames(2)
    assert not line.follows_path
    assert person.session.camera.same_as(person.session.scene.camera)
    line.path = None
    viewer.act("camera path")
    assert person.state.messages[-1] == f"{person.session.scene.name} has no camera path"
    line.path = path


def test_help_closes_by_escape_and_keeps_the_pick(person: Any) -> None:
    prepare(person, "help")
    person.press("F1")
    assert "help" in marks.rectangles
    person.press("Escape")
    assert not person.state.show_help and person.state.picked is not None


@pytest.mark.parametrize("size", [(480, 270), (640, 360), (1600, 900), (300, 900)])
def test_any_size_of_the_window_has_room_for_everything(person: Any, size: tuple[int, int]) -> None:
    person.window.resize(*size)
    person.frames(4)
    inside = [marks.rectangles[name] for name in ("picture", "status.state", "menu.File")]
    for left, top, right, bottom in inside:
        assert left >= 0 and top >= 0 and right <= size[0] + 1 and bottom <= size[1] + 1
        assert right > left and bottom > top
    assert marks.rectangles["picture"][2] <= marks.rectangles["tab.Controls"][0]
    person.window.resize(960, 540)
    person.frames(3)


def test_quit_by_key_ends_the_loop(person: Any) -> None:
    """Last of this module: it closes the window."""
    person.press("q", ("Control",))
    assert person.viewer.quit and person.window.closed
