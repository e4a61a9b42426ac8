"""Orbit and fly cameras: habits, exactness, and no pose that is no pose."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.gpu.errors import UserError
from engine.scene.camera import Camera, look_at
from engine.view.camera_control import AXIS_VIEWS, FlyControl, OrbitControl, rotation
from engine.view.camera_text import camera_from_text, camera_text

BOX = np.array([[-2.0, 0.0, -3.0], [4.0, 3.0, 5.0]])
START = look_at(np.array([5.0, 4.0, 9.0]), np.array([1.0, 1.0, 1.0]), 0.9)
POLES = [0.5 * np.pi, -0.5 * np.pi]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def orbit(camera: Camera = START) -> OrbitControl:
    return OrbitControl(camera, BOX)


def on_screen(camera: Camera, point: Any) -> Any:
    """[2] pixel of a world point in a picture of 960 x 540."""
    clip = camera.projection(960 / 540) @ camera.view_matrix() @ np.append(point, 1.0)
    assert clip[3] > 0
    return (clip[:2] / clip[3] * [0.5, -0.5] + 0.5) * [960, 540]


def assert_rigid(camera: Camera) -> None:
    axes = camera.transform[:3, :3]
    assert np.isfinite(camera.transform).all()
    assert np.allclose(axes.T @ axes, np.eye(3), atol=1e-9)
    assert np.linalg.det(axes) > 0
    assert axes[1, 1] >= -1e-9, "the picture is upside down"


def test_untouched_camera_is_the_given_one() -> None:
    rolled = START.transform.copy()
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    rolled[:3, :3] = rolled[:3, :3] @ turn
    camera = Camera(rolled, 0.7, 1e-4)
    assert np.array_equal(orbit(camera).camera().transform, rolled)
    assert orbit(camera).camera().near == 1e-4


def test_pose_survives_the_angles() -> None:
    control = orbit()
    control.drag(0.0, 0.0)
    assert np.allclose(control.camera().transform, START.transform, atol=1e-12)
    assert control.camera().y_fov == START.y_fov
    assert control.camera().near == START.near


def test_orbit_keeps_the_pivot_in_the_middle_and_its_distance() -> None:
    control = orbit()
    pivot, distance = control.pivot, control.distance
    for dx, dy in ((50, 20), (-300, 90), (10, -400), (0, 4000)):
        control.drag(dx, dy)
        assert np.allclose(control.pivot, pivot, atol=1e-9)
        assert np.isclose(np.linalg.norm(control.camera().position - pivot), distance)
        assert np.allclose(on_screen(control.camera(), pivot), [480, 270], atol=1e-6)


def test_orbit_follows_the_mouse() -> None:
    control = orbit()
    near = control.pivot + 0.2 * control.distance * rotation(control.yaw, control.pitch)[:, 2]
    before = on_screen(control.camera(), near)
    control.drag(20, 0)
    right = on_screen(control.camera(), near)
    assert right[0] > before[0] + 1, "what faces the viewer goes where the mouse goes"
    control.drag(0, 20)
    assert on_screen(control.camera(), near)[1] > right[1] + 1


@pytest.mark.parametrize("button, modifiers", [("middle", ()), ("left", ("Shift",))])
def test_pan_keeps_the_pivot_under_the_mouse(button: str, modifiers: tuple[str, ...]) -> None:
    control = orbit()
    grabbed = control.pivot
    control.drag(70, -30, button, modifiers)
    assert np.allclose(on_screen(control.camera(), grabbed), [480 + 70, 270 - 30], atol=1e-6)


def test_wheel_moves_nearer_and_back() -> None:
    control = orbit()
    pivot, start = control.pivot, control.distance
    control.wheel(-300)
    assert control.distance < 0.8 * start
    assert np.allclose(control.pivot, pivot)
    control.wheel(300)
    assert np.isclose(control.distance, start)
    control.drag(0, -20, "right")
    assert control.distance < start


def test_axis_views() -> None:
    expected = {
        "view front": (0, 0, -1),
        "view back": (0, 0, 1),
        "view right": (-1, 0, 0),
        "view left": (1, 0, 0),
        "view top": (0, -1, 0),
        "view bottom": (0, 1, 0),
    }
    assert set(expected) == set(AXIS_VIEWS)
    for action, forward in expected.items():
        control = orbit()
        pivot = control.pivot
        assert control.act(action)
        assert np.allclose(control.camera().forward, forward, atol=1e-12), action
        assert np.allclose(control.pivot, pivot)
        assert_rigid(control.camera())
    top = orbit()
    top.act("view top")
    # As from the front, with the far side up.
    assert np.allclose(top.camera().transform[:3, 0], [1, 0, 0])
    assert np.allclose(top.camera().transform[:3, 1], [0, 0, -1], atol=1e-12)
    assert not orbit().act("no such action")


def test_focus_shows_the_whole_box() -> None:
    for size in ((960.0, 540.0), (300.0, 900.0)):
        for box in (BOX, np.array([[1.0, 1.0, 1.0], [1.1, 1.2, 1.1]])):
            control = orbit()
            control.size = size
            forward = control.camera().forward
            control.focus(box)
            camera = control.camera()
            assert np.allclose(camera.forward, forward)
            corners = np.array(np.meshgrid(*box.T)).reshape(3, -1).T
            clip = (
                np.c_[corners, np.ones(8)]
                @ (camera.projection(size[0] / size[1]) @ camera.view_matrix()).T
            )
            ends = np.abs(clip[:, :2] / clip[:, 3:]).max()
            assert (clip[:, 3] > 0).all() and ends <= 1.0
            assert ends > 0.4, "far too small in the picture"
            assert np.allclose(control.pivot, box.mean(0))


def test_focus_on_a_point_and_on_nothing() -> None:
    control = orbit()
    control.focus(np.full((2, 3), 2.0))
    assert_rigid(control.camera())
    assert control.distance < 1e-4
    before = control.camera()
    control.focus(np.full((2, 3), np.nan))
    assert control.camera() is before


def test_fly_keys() -> None:
    control = FlyControl(START, BOX)
    axes = START.transform[:3, :3]
    expected = {
        "w": -axes[:, 2],
        "s": axes[:, 2],
        "d": axes[:, 0],
        "a": -axes[:, 0],
        "e": np.array([0.0, 1.0, 0.0]),
        "q": np.array([0.0, -1.0, 0.0]),
    }
    for name, heading in expected.items():
        control.set_camera(START)
        assert control.key(name, True)
        control.update(0.1)
        control.key(name, False)
        moved = control.camera().position - START.position
        assert np.allclose(moved, 0.1 * control.speed * heading), name
        control.update(0.1)
        assert np.allclose(control.camera().position - START.position, moved)
    assert np.isclose(control.speed, np.linalg.norm(BOX[1] - BOX[0]) / 8)


def test_fly_is_faster_with_shift_and_not_on_a_diagonal() -> None:
    def travelled(*keys: str) -> float:
        control = FlyControl(START, BOX)
        for key in keys:
            control.key(key, True, ("Shift",) if key == "Shift" else ())
        control.update(0.1)
        return float(np.linalg.norm(control.camera().position - START.position))

    assert np.isclose(travelled("Shift", "W"), 4 * travelled("w"))
    assert np.isclose(travelled("w", "d"), travelled("w"))
    assert travelled("w", "s") == 0


def test_fly_ignores_commands_and_forgets_keys() -> None:
    control = FlyControl(START, BOX)
    assert not control.key("s", True, ("Control",))
    control.update(0.1)
    assert control.camera() is START
    control.key("w", True)
    control.release_keys()
    control.update(0.1)
    assert control.camera() is START


def test_fly_looks_where_the_mouse_goes() -> None:
    control = FlyControl(START, BOX)
    ahead = START.position + START.forward
    control.drag(30, 0, "right")
    assert np.array_equal(control.camera().position, START.position)
    assert on_screen(control.camera(), ahead)[0] < 470, "turned right: what was ahead is left"
    control.drag(-30, 30, "right")
    assert on_screen(control.camera(), ahead)[1] < 260, "turned down: what was ahead is above"


def test_moving_ends_a_while_after_the_last_change() -> None:
    clock = Clock()
    control = OrbitControl(START, BOX, clock)
    assert not control.moving
    control.drag(1, 0)
    clock.now += 0.14
    assert control.moving
    clock.now += 0.02
    assert not control.moving


@pytest.mark.parametrize("pitch", POLES)
def test_poles_have_an_up(pitch: float) -> None:
    for yaw in np.linspace(-3, 3, 7):
        transform = np.eye(4)
        transform[:3, :3] = rotation(yaw, pitch)
        control = orbit(Camera(transform, 0.9))
        control.drag(0, 0)
        assert np.allclose(control.camera().transform[:3, :3], transform[:3, :3], atol=1e-9)


FINITE = st.floats(-1e4, 1e4)
STEP = st.one_of(
    st.tuples(st.just("drag"), FINITE, FINITE, st.sampled_from(["left", "middle", "right"])),
    st.tuples(st.just("wheel"), FINITE),
    st.tuples(st.just("act"), st.sampled_from([*AXIS_VIEWS, "turn up", "turn down", "nearer"])),
    st.tuples(st.just("update"), st.floats(0, 10)),
    st.tuples(st.just("focus"), FINITE, FINITE),
    st.tuples(st.just("key"), st.sampled_from("wasdeq"), st.booleans()),
)


@given(st.booleans(), st.lists(STEP, max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_input_leaves_a_rigid_camera(flying: bool, steps: list[tuple[Any, ...]]) -> None:
    control = (FlyControl if flying else OrbitControl)(START, BOX)
    for name, *values in steps:
        if name == "focus":
            control.focus(np.sort(np.array([[values[0]] * 3, [values[1]] * 3]), 0))
        else:
            getattr(control, name)(*values)
        assert_rigid(control.camera())
        assert np.isfinite(control.distance) and control.distance > 0
        assert np.isfinite(control.pivot).all()


def test_values_that_are_no_numbers_change_nothing() -> None:
    for value in (np.nan, np.inf, -np.inf):
        with np.errstate(invalid="ignore"):
            control = orbit()
            control.drag(value, 0)
            control.drag(0, value, "middle")
        assert np.array_equal(control.camera().transform, START.transform)


def test_scene_without_extent() -> None:
    control = OrbitControl(START, np.zeros((2, 3)))
    control.wheel(100)
    control.drag(10, 10)
    assert_rigid(control.camera())


@given(st.floats(-3, 3), st.floats(-1.5, 1.5), st.tuples(FINITE, FINITE, FINITE))
@settings(max_examples=60, deadline=None)
def test_text_is_exact(yaw: float, pitch: float, position: tuple[float, float, float]) -> None:
    transform = np.eye(4)
    transform[:3, :3] = rotation(yaw, pitch)
    transform[:3, 3] = position
    camera = Camera(transform, 0.1 + abs(yaw) / 3, 1e-3 / 3)
    control = orbit()
    control.from_text(camera_text(camera))
    assert np.array_equal(control.camera().transform, transform)
    assert (control.camera().y_fov, control.camera().near) == (camera.y_fov, camera.near)
    assert control.text() == camera_text(camera)
    assert "\n" not in control.text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"transform": 1, "y_fov": 1, "near": 1}',
        camera_text(START).replace('"near": 0.001', '"near": 0'),
        camera_text(START).replace('"near": 0.001', '"near": NaN'),
        camera_text(START).replace('"y_fov": 0.9', '"y_fov": 4'),
        camera_text(Camera(2 * np.eye(4), 1.0)),
        camera_text(Camera(np.diag([-1.0, 1.0, 1.0, 1.0]), 1.0)),
        camera_text(Camera(np.diag([1e300, 1.0, 1.0, 1.0]), 1.0)),
        camera_text(START).replace("1.0]]", "Infinity]]"),
    ],
)
def test_other_text_is_refused_in_one_line(text: str) -> None:
    control = orbit()
    with pytest.raises(UserError) as caught:
        control.from_text(text)
    assert "\n" not in str(caught.value)
    assert control.camera() is START
    with pytest.raises(UserError):
        camera_from_text(text)
