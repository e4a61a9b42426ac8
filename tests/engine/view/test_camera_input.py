"""The camera under mouse and keys: presses stay with what they began on."""

from collections.abc import Callable
from typing import Any

import numpy as np
from imgui_bundle import imgui

from engine.scene.camera import look_at
from engine.view.camera_control import CameraControl, FlyControl, OrbitControl
from engine.view.camera_input import CameraInput
from engine.view.marks import mark

BOX = np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
START = look_at(np.array([3.0, 2.0, 4.0]), np.zeros(3), 0.9)


class Scene:
    def __init__(self, control: CameraControl) -> None:
        self.control = control
        self.input = CameraInput()
        self.clicks = 0
        self.text = ""

    def __call__(self) -> None:
        imgui.button("panel")
        mark("panel")
        _, self.text = imgui.input_text("text", self.text)
        mark("text")
        imgui.invisible_button("picture", imgui.ImVec2(200, 100))
        mark("picture")
        self.clicks += self.input.update(
            self.control, imgui.is_item_hovered(), imgui.get_io().delta_time
        )


def moved(scene: Scene) -> bool:
    return scene.control.camera() is not START


def test_drag_on_the_picture_orbits(drive: Callable[..., Any]) -> None:
    scene = Scene(OrbitControl(START, BOX))
    user = drive(scene)
    user.drag("picture", 40)
    assert moved(scene) and scene.clicks == 0
    assert np.allclose(scene.control.pivot, 0, atol=1e-9)
    alone = OrbitControl(START, BOX)
    alone.drag(40, 0)
    assert np.allclose(scene.control.camera().transform, alone.camera().transform, atol=1e-5)


def test_click_picks_and_does_not_turn(drive: Callable[..., Any]) -> None:
    scene = Scene(OrbitControl(START, BOX))
    user = drive(scene)
    user.click("picture")
    assert scene.clicks == 1 and not moved(scene)
    user.click("picture", button=2)
    assert scene.clicks == 1
    user.click("panel")
    assert scene.clicks == 1


def test_drag_that_began_on_a_panel_is_the_panels(drive: Callable[..., Any]) -> None:
    scene = Scene(OrbitControl(START, BOX))
    user = drive(scene)
    user.drag("panel", 60, 80)
    assert not moved(scene)


def test_wheel_and_middle_button(drive: Callable[..., Any]) -> None:
    scene = Scene(OrbitControl(START, BOX))
    user = drive(scene)
    user.move("picture")
    user.window.send("wheel", dy=-200.0, x=50, y=60)
    user.frames()
    assert scene.control.distance < 0.9 * np.linalg.norm(START.position)
    before = scene.control.pivot
    user.drag("picture", 30, button=3)
    assert not np.allclose(scene.control.pivot, before)


def test_flying_keys_but_not_in_a_text_field(drive: Callable[..., Any]) -> None:
    scene = Scene(FlyControl(START, BOX))
    user = drive(scene)
    user.window.send("key_down", key="w")
    user.frames(3)
    user.window.send("key_up", key="w")
    user.frames()
    position = scene.control.camera().position
    assert (position - START.position) @ START.forward > 0
    user.frames(3)
    assert np.array_equal(scene.control.camera().position, position), "it stops"
    user.click("text")
    user.window.send("key_down", key="w")
    user.frames(3)
    assert np.array_equal(scene.control.camera().position, position)
