"""What goes wrong shows in the window, with a way on; and what a run leaves for the next one."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.gpu.device import open_device
from engine.view import marks
from engine.view.settings import Settings
from passes.option_list import ViewSettings, find_option
from treeline.view.app import KEPT, Viewer
from treeline.view.view_error import ViewError

Open = Callable[..., Any]
OF_PANELS = ("panel_share", "panel", "palette", "fly")


@pytest.fixture(scope="module")
def person(open_viewer: Open) -> Any:
    person = open_viewer(size=(640, 360))
    person.settle()
    return person


def test_a_failed_build_says_why_and_the_way_back_is_the_old_option(
    person: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = person.session.settings
    leaf = find_option("leaf").set(good, 4)

    def refuse(*arguments: Any, **more: Any) -> Any:
        raise MemoryError("no room for 4 triangles a leaf")

    with monkeypatch.context() as patch:
        patch.setattr("treeline.view.structure_store.build", refuse)
        person.session.change(leaf)
        person.until(lambda: person.session.error is not None)
        person.frames(3)
        assert "picture" not in marks.rectangles and "error.button" in marks.rectangles
        assert person.session.error == ViewError("no room for 4 triangles a leaf", "limit")
        person.click("error.button")  # nothing is mended: it stays
        person.until(lambda: person.session.error is not None)
    person.click("error.button")
    person.settle()
    assert person.session.error is None and person.session.settings == leaf
    with monkeypatch.context() as patch:
        patch.setattr("treeline.view.structure_store.build", refuse)
        person.session.change(find_option("leaf").set(good, 1))
        person.until(lambda: person.session.error is not None)
    person.session.change(good)
    person.settle()
    assert "picture" in marks.rectangles and person.session.settings == good


def test_what_cannot_be_written_is_said_and_nothing_ends(person: Any, tmp_path: Path) -> None:
    folder = person.viewer.folder
    (tmp_path / "file").write_text("no folder")
    person.viewer.folder = tmp_path / "file" / "below"
    try:
        for command in ("screenshot", "save picture", "save report", "save capture"):
            person.state.messages.clear()
            person.viewer.act(command)
            person.frames(2)
            assert len(person.state.messages) == 1 and "file" in person.state.messages[0], command
    finally:
        person.viewer.folder = folder
    assert os.listdir(tmp_path) == ["file"]


def test_a_clipboard_without_a_camera_moves_nothing(person: Any) -> None:
    from imgui_bundle import imgui

    imgui.set_clipboard_text("no camera")
    camera = person.viewer.control.camera()
    person.press("v", ("Control",))
    assert person.viewer.control.camera() is camera and "camera" in person.state.messages[-1]


def test_settings_last_until_the_next_run(
    person: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TREELINE_CONFIG", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    kept = Settings(KEPT)
    assert set(KEPT) == set(OF_PANELS)
    viewer = Viewer(person.window, person.session, kept, tmp_path, (24, 16))
    viewer.state.palette = "plasma"
    viewer.act("panel Rays")
    viewer.toggle_fly()
    for _ in range(3):
        person.window.draw_once(viewer.draw, viewer.between)
    viewer.close()
    again = Settings(KEPT)
    assert again.load() is None
    found = {name: again[name] for name in OF_PANELS}
    assert found == {"panel_share": 0.4, "panel": "Rays", "palette": "plasma", "fly": True}
    next_one = Viewer(person.window, person.session, again, tmp_path, (24, 16))
    assert next_one.state.palette == "plasma" and next_one.tabs.wanted == "Rays"
    assert type(next_one.control) is type(viewer.control)
    assert not list(tmp_path.rglob("imgui.ini"))


def test_a_lost_device_says_so_and_retry_opens_another(open_viewer: Open) -> None:
    lost, opened = open_device(), []

    def new_device() -> Any:
        opened.append(open_device())
        return opened[-1]

    settings = replace(ViewSettings(), frame=replace(ViewSettings().frame, count=False))
    person = open_viewer(device=lost, new_device=new_device, settings=settings, size=(480, 270))
    person.settle()
    lost.wgpu.destroy()
    person.viewer.control.drag(20.0, 0.0)

    def seen() -> None:
        """Once the box with the error has been drawn, presses its button."""
        if "error.button" in marks.rectangles:
            assert person.session.error.kind == "device" and person.session.timed is None
            person.session.retry()
        elif person.session.error is None and person.session.ready and opened:
            person.viewer.quit = True
        person.viewer.work()

    person.window.run(person.viewer.draw, seen, person.viewer.recover, person.viewer.between)
    assert len(opened) == 1 and person.session.device is person.window.device is opened[0]
    assert person.viewer.picture.pixels(person.state).std() > 5
