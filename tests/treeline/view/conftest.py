"""A small scene with a mirror, built in a blink, and sessions of it that tests step by hand; and a
frame of the embedded scene."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.scene.camera import look_at
from engine.scene.light import Environment, RectLight
from engine.scene.material import Material
from engine.scene.mesh import make_mesh
from engine.scene.scene import Instance, Scene
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.option_list import ViewSettings
from passes.prepare import PreparedScene, prepare
from treeline.scenes import load
from treeline.view.session import ViewSession

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


def run_until(session: ViewSession, done: Callable[[], bool], limit_s: float = 30.0) -> int:
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
    frame = HybridFrame(device, hall, FrameOptions(64, 36, seed=3, count=True))
    assert frame.run(5).valid
    return frame


@pytest.fixture
def small_scene() -> Scene:
    return make_small_scene()
