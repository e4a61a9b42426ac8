"""The ray inspector, driven by clicks and keys on an offscreen window."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from imgui_bundle import imgui

from engine.view import marks
from engine.view.shortcuts import Shortcuts
from engine.view.window import Window
from passes.hybrid import HybridFrame
from treeline.view.pick import pick
from treeline.view.ray_cursor import RAY_SHORTCUTS
from treeline.view.ray_panel import RayPanel
from treeline.view.view_state import ViewState

SIZE = (380, 620)


class Driven:
    """A panel in a window of its own, and what a user does with it."""

    def __init__(self, device: Any, frame: HybridFrame) -> None:
        self.window = Window(device, SIZE, "ray", offscreen=True)
        self.session: Any = SimpleNamespace(device=device, frame=frame)
        self.state, self.panel = ViewState(), RayPanel()
        self.shortcuts = Shortcuts(RAY_SHORTCUTS)

    def draw(self, frames: int = 1) -> None:
        for _ in range(frames):
            self.window.draw_once(self._build)
            self.panel.cursor.work(self.session)

    def _build(self) -> None:
        imgui.set_next_window_pos((0, 0))
        imgui.set_next_window_size(SIZE)
        imgui.begin("##panel", None, imgui.WindowFlags_.no_decoration)
        for action in self.shortcuts.pressed():
            assert self.panel.cursor.act(action, self.state)
        self.panel.draw(self.session, self.state)
        imgui.end()

    def click(self, name: str) -> None:
        x, y = marks.centre(name)
        self.window.send("pointer_move", x=x, y=y)
        self.draw()
        self.window.send("pointer_down", x=x, y=y, button=1)
        self.draw()
        self.window.send("pointer_up", x=x, y=y, button=1)
        self.draw(2)

    def press(self, key: str, *modifiers: str) -> None:
        for kind, keys in (("key_down", (*modifiers, key)), ("key_up", (key, *modifiers))):
            for name in keys:
                held = modifiers if kind == "key_down" else ()
                self.window.send(kind, key=name, modifiers=held)
            self.draw(2)


@pytest.fixture
def driven(device: Any, counted: HybridFrame) -> Iterator[Driven]:
    found = Driven(device, counted)
    found.state.picked = pick(counted, 52, 34)
    found.draw(6)
    yield found
    found.window.close()


def test_rays_are_chosen_by_a_click(driven: Driven) -> None:
    picked = driven.state.picked
    # The primary ray, and one at least of every type that the frame sends.
    assert picked is not None and len(picked.rays) >= 4
    assert len(driven.panel.cursor.walks) == len(picked.rays)  # read one a frame
    driven.click("ray.row.1")
    assert (driven.state.ray_index, driven.state.ray_step) == (1, 0)
    driven.click("ray.row.3")
    assert driven.state.ray_index == 3


def test_buttons_and_keys_step(driven: Driven) -> None:
    driven.click("ray.row.1")
    walk = driven.panel.cursor.walks[1]
    last = len(walk) - 1
    for name, step in (("on", 1), ("on", 2), ("back", 1), ("last", last), ("first", 0)):
        driven.click(f"ray.{name}")
        assert driven.state.ray_step == step
    driven.click("ray.back")
    assert driven.state.ray_step == 0
    driven.click("ray.hit")
    assert driven.state.ray_step == walk.hit > 0
    assert driven.state.selected == walk.node(walk.hit)
    for keys, step in (
        ((",", "Control"), 0),
        ((".",), 1),
        ((".", "Control"), last),
        ((",",), last - 1),
        (("/",), walk.hit),
    ):
        driven.press(*keys)
        assert driven.state.ray_step == step
    driven.press("]")
    assert (driven.state.ray_index, driven.state.ray_step) == (2, 0)
    driven.press("[")
    assert driven.state.ray_index == 1


def test_a_clicked_step_selects_its_node(driven: Driven) -> None:
    driven.click("ray.row.0")
    driven.click("ray.step.3")
    assert driven.state.ray_step == 3
    node = driven.panel.cursor.walks[0].node(3)
    assert node is not None and driven.state.selected == node


def test_verify_asks_the_gpu(driven: Driven) -> None:
    driven.click("ray.row.1")
    assert driven.panel.cursor.checks == {}
    driven.click("ray.verify")
    assert driven.panel.cursor.checks[1].verified
    assert "verified: the same" in driven.panel.cursor.checks[1].verdict


def test_text_goes_to_the_clipboard(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(imgui, "set_clipboard_text", copied.append)
    driven.click("ray.row.2")
    driven.click("ray.copy")
    assert copied == [driven.panel.cursor.walks[2].text()]


def test_parameters_open(driven: Driven) -> None:
    before = marks.rectangles["ray.first"]
    driven.click("ray.parameters")
    assert marks.rectangles["ray.first"][1] > before[1] + 100


def test_another_pick_begins_anew(driven: Driven, counted: HybridFrame) -> None:
    driven.click("ray.row.1")
    driven.click("ray.verify")
    driven.click("ray.last")
    driven.state.picked = pick(counted, 20, 20)
    driven.draw(6)
    assert (driven.state.ray_index, driven.state.ray_step) == (0, 0)
    assert driven.panel.cursor.checks == {}
    assert len(driven.panel.cursor.walks) == len(driven.state.picked.rays)
    driven.state.picked = None
    driven.draw()
    assert driven.panel.cursor.walks == {} and "ray.first" not in marks.rectangles
    assert driven.panel.cursor.act("ray hit", driven.state)
    assert not driven.panel.cursor.act("screenshot", driven.state)


def test_contract_traversal_cannot_be_verified(driven: Driven, counted: HybridFrame) -> None:
    picked = pick(counted, 52, 34)
    rays = [
        replace(ray, kernel=(ray.kernel[0], {**ray.constants, "GROWTH": 6})) for ray in picked.rays
    ]
    driven.state.picked = replace(picked, rays=tuple(rays))
    driven.draw(6)
    driven.click("ray.verify")
    assert driven.panel.cursor.checks == {}
    driven.click("ray.on")
    assert driven.state.ray_step == 1
