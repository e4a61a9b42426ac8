"""A small scene with a mirror, built in a blink, and sessions of it that tests step by hand; and a
frame of the embedded scene."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui

from bvh.build import BuildOptions
from engine.scene.animation import Animation, Clip
from engine.scene.camera import look_at
from engine.scene.camera_path import CameraPath
from engine.scene.channel import Channel
from engine.scene.light import Environment, RectLight
from engine.scene.material import Material
from engine.scene.mesh import make_mesh
from engine.scene.scene import Instance, Scene
from engine.view import marks
from engine.view.settings import Settings
from engine.view.window import Window
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.option_list import ViewSettings
from passes.prepare import PreparedScene, prepare
from passes.rays import with_every_ray
from treeline.scenes import load
from treeline.view.app import KEPT, Viewer
from treeline.view.session import ViewSession
from treeline.view.view_state import ViewState

SIZE = (24, 16)


def make_quad(name: str, corner: Any, u: Any, v: Any, material: int) -> Any:
    corner, u, v = (np.asarray(item, float) for item in (corner, u, v))
    points = np.stack([corner, corner + u, corner + u + v, corner + v])
    return make_mesh(name, points, np.array([[0, 1, 2], [0, 2, 3]]), material)


def make_small_scene() -> Scene:
    """A mirror floor, a grey wall and a pillar's front, one lamp above: 6 triangles."""
    meshes = (
        make_quad("floor", (-3, 0, 3), (6, 0, 0), (0, 0, -6), 0),
        make_quad("wall", (-3, 0, -3), (6, 0, 0), (0, 4, 0), 1),
        make_quad("front", (-0.5, 0.5, 0), (1, 0, 0), (0, 2, 0), 1),
    )
    materials = (
        Material("mirror", (1.0, 1.0, 1.0, 1.0), 1.0, 0.1),
        Material("grey", (0.5, 0.5, 0.5, 1.0), 0.0, 1.0),
    )
    grey = (0.3, 0.3, 0.3)
    return Scene(
        "small",
        meshes,
        materials,
        (),
        tuple(Instance(mesh.name, i, np.eye(4)) for i, mesh in enumerate(meshes)),
        look_at(np.array([0.0, 1.6, 5.0]), np.array([0.0, 1.0, 0.0]), np.radians(50.0)),
        RectLight(
            np.array([0.0, 3.8, 1.0]),
            np.array([0.3, 0.0, 0.0]),
            np.array([0.0, 0.0, 0.3]),
            (9.0, 9.0, 9.0),
        ),
        Environment(grey, grey, grey),
    )


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_session(device: Any, clock: Clock) -> Iterator[Callable[..., ViewSession]]:
    """open_session(size=, settings=, scene=, **ViewSession arguments) -> ViewSession."""
    opened: list[ViewSession] = []

    def opener(
        size: tuple[int, int] = SIZE,
        settings: ViewSettings | None = None,
        scene: Any = None,
        **more: Any,
    ) -> ViewSession:
        more = {"cached": False, "in_background": False, "clock": clock, **more}
        settings = settings or ViewSettings()
        session = ViewSession(device, scene or make_small_scene(), "small", settings, size, **more)
        opened.append(session)
        return session

    yield opener
    for session in opened:
        session.close()


def run_until(session: ViewSession, done: Callable[[], bool], limit_s: float = 120.0) -> int:
    """Steps until done; how many it took."""
    end, steps = time.monotonic() + limit_s, 0
    while not done():
        assert time.monotonic() < end, f"not done after {steps} steps; busy: {session.busy}"
        session.step()
        assert session.error is None, session.error
        steps += 1
        time.sleep(0.0002)
    return steps


@pytest.fixture
def until() -> Callable[..., int]:
    return run_until


@pytest.fixture
def no_counts() -> ViewSettings:
    return ViewSettings(frame=FrameOptions(0, 0, count=False))


@pytest.fixture(scope="session")
def hall() -> PreparedScene:
    """The embedded scene: alpha-tested leaves, hundreds of instances."""
    return prepare(load(), BuildOptions(reinsertion=0))


@pytest.fixture(scope="session")
def counted(device: Any, hall: PreparedScene) -> HybridFrame:
    """A counted frame of the hall that ran."""
    frame = HybridFrame(device, hall, with_every_ray(FrameOptions(64, 36, seed=3, count=True)))
    assert frame.run(5).valid
    return frame


@pytest.fixture
def small_scene() -> Scene:
    return make_small_scene()


def make_sliding_scene() -> Scene:
    """The small scene with a clip of a second, in which the pillar's front goes a metre aside, and
    a camera path of two."""
    scene = make_small_scene()
    slide = Channel(
        2, "translation", "LINEAR", np.array([0.0, 1.0]), np.array([[0.0, 0.0, 0.0], [1, 0, 0]])
    )
    still = np.array([0.0, 0.0, 0.0, 1.0])
    animation = Animation(
        parents=np.full(3, -1),
        translations=np.zeros((3, 3)),
        rotations=np.tile(still, (3, 1)),
        scales=np.ones((3, 3)),
        matrices={},
        clips=(Clip("slide", 1.0, (slide,)),),
        skins=(),
        skinned=(),
        instance_nodes=(0, 1, 2),
    )
    front = replace(scene.instances[2], lifetime="rigid")
    path = CameraPath(
        np.array([1.0, 3.0]),
        np.array([[0.0, 1.0, 4.0], [2.0, 1.0, 4.0]]),
        np.zeros((2, 3)),
        np.full(2, 0.7),
    )
    return replace(
        scene,
        instances=(*scene.instances[:2], front),
        animation=animation,
        camera_path=path,
    )


class Shown:
    """A panel that fills an offscreen window; `asked` commands do what the viewer would do."""

    def __init__(self, device: Any, session: Any, panel: Any, size: tuple[int, int]) -> None:
        self.session, self.panel, self.state = session, panel, ViewState()
        self.size = size
        self.window = Window(device, size, "test", offscreen=True)
        self.frames()

    def draw(self) -> None:
        imgui.set_next_window_pos((0, 0))
        imgui.set_next_window_size(self.size)
        imgui.begin("test", None, imgui.WindowFlags_.no_decoration)
        self.panel.draw(self.session, self.state)
        imgui.end()
        while self.state.asked:
            {"pin": self.session.pin, "swap": self.session.swap}[self.state.asked.pop(0)]()

    def frames(self, count: int = 3) -> None:
        for _ in range(count):
            assert self.window.draw_once(self.draw)

    def pointer(self, kind: str, x: float, y: float, button: int = 0) -> None:
        held = (1,) if button and kind != "pointer_up" else ()
        self.window.send(kind, x=x, y=y, button=button, buttons=held)
        self.frames(1)

    def click(self, name: str, dx: float = 0.0) -> None:
        """On a marked item, at its middle or near its left end, as a row may reach out of the
        window; with `dx`, so much of its width beside the middle."""
        left, _, right, _ = marks.rectangles[name]
        x, y = marks.centre(name)
        x = x + dx * (right - left) if dx else min(x, left + 30)
        self.pointer("pointer_move", x, y)
        self.pointer("pointer_down", x, y, 1)
        self.pointer("pointer_up", x, y, 1)
        self.frames(2)


@pytest.fixture
def open_panel(device: Any) -> Iterator[Callable[..., Shown]]:
    """open_panel(session, panel, size) -> Shown"""
    opened: list[Shown] = []

    def opener(session: Any, panel: Any, size: tuple[int, int]) -> Shown:
        opened.append(Shown(device, session, panel, size))
        return opened[-1]

    yield opener
    for shown in opened:
        shown.window.close()


class Person:
    """Drives a viewer as a person does: by what is marked on the screen, and by keys."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.window, self.session, self.state = viewer.window, viewer.session, viewer.state

    def frames(self, count: int = 1) -> None:
        for _ in range(count):
            self.window.draw_once(self.viewer.draw, self.viewer.between)
            self.viewer.work()

    def until(self, done: Callable[[], bool], limit_s: float = 120.0) -> None:
        end = time.monotonic() + limit_s
        while not done():
            assert time.monotonic() < end, f"busy: {self.session.busy}, {self.session.error}"
            self.frames()

    def settle(self) -> None:
        """Until the picture shows what was asked for, and its numbers are there."""
        self.frames(2)
        self.until(lambda: self.session.ready)
        self.frames(3)

    def pointer(self, kind: str, x: float, y: float, button: int = 0) -> None:
        held = (button,) if button and kind != "pointer_up" else ()
        self.window.send(kind, x=x, y=y, button=button, buttons=held)

    def click(self, name: str, *, slowly: bool = True) -> None:
        """`slowly`: a frame passes between the events, else all three are in one."""
        x, y = marks.centre(name)
        for kind, button in (("pointer_move", 0), ("pointer_down", 1), ("pointer_up", 1)):
            self.pointer(kind, x, y, button)
            self.frames(slowly)
        self.frames(1 if slowly else 4)

    def drag(self, name: str, dx: float, dy: float = 0.0, button: int = 1) -> None:
        x, y = marks.centre(name)
        self.pointer("pointer_move", x, y)
        self.frames()
        self.pointer("pointer_down", x, y, button)
        self.frames()
        for part in (0.5, 1.0):
            self.pointer("pointer_move", x + part * dx, y + part * dy)
            self.frames()
        self.pointer("pointer_up", x + dx, y + dy, button)
        self.frames(2)

    def wheel(self, name: str, dy: float) -> None:
        x, y = marks.centre(name)
        self.pointer("pointer_move", x, y)
        self.frames()
        self.window.send("wheel", x=x, y=y, dy=dy)
        self.frames(2)

    def press(self, key: str, modifiers: tuple[str, ...] = ()) -> None:
        for name in (*modifiers, key):
            self.window.send("key_down", key=name, modifiers=modifiers)
            self.frames()
        for name in (key, *modifiers):
            self.window.send("key_up", key=name, modifiers=())
        self.frames(2)

    def picture(self) -> Any:
        """The picture's part of the window, [h, w, 3] of bytes."""
        left, top, right, bottom = (round(side) for side in marks.rectangles["picture"])
        return self.window.picture()[top:bottom, left:right].astype(int)


@pytest.fixture(scope="module")
def open_viewer(device: Any, tmp_path_factory: Any) -> Iterator[Callable[..., Person]]:
    """open_viewer(scene=, settings=, size=, **ViewSession arguments) -> Person: one viewer in an
    offscreen window, its exports in a folder of its own."""
    opened: list[Person] = []

    def opener(
        scene: Any = None,
        settings: ViewSettings | None = None,
        size: tuple[int, int] = (960, 540),
        kept: Settings | None = None,
        **more: Any,
    ) -> Person:
        place = more.pop("device", device)
        window = Window(place, size, "test", offscreen=True)
        more = {"cached": False, "in_background": False, "continuous": False, **more}
        session = ViewSession(
            place, scene or make_sliding_scene(), "small", settings or ViewSettings(), SIZE, **more
        )
        folder = tmp_path_factory.mktemp("exports")
        opened.append(Person(Viewer(window, session, kept or Settings(KEPT), folder, SIZE)))
        return opened[-1]

    yield opener
    for person in opened:
        person.session.close()
        person.window.close()
