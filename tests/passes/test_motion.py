"""Motion vectors: where the surface that a pixel shows was on the picture before, by the camera and
by what moves in the scene."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.gpu.errors import UserError
from engine.scene.camera import look_at
from engine.scene.load import load_scene
from engine.scene.pose import posed
from engine.scene.scene import Scene
from passes.display import DisplayPass
from passes.display_records import DISPLAY_UNIFORMS, FULL_MOTION
from passes.gpu_scene import GpuScene
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare
from passes.twins.display_motion import display_motion
from passes.twins.read_back import read_resources

SIZE = (60, 44)
FAST = BuildOptions(builder="lbvh", reinsertion=0)
EXACT = 2e-3  # pixels: positions and matrices are float32
MOVING = [("Fox", "Run"), ("CesiumMilkTruck", "clip 0")]


@pytest.fixture(scope="module")
def scene_of(shared_scenes: Any) -> Callable[[str], PreparedScene]:
    scenes: dict[str, PreparedScene] = {}

    def load(name: str) -> PreparedScene:
        if name not in scenes:
            scenes[name] = prepare(load_scene(shared_scenes / f"{name}.glb"), FAST)
        return scenes[name]

    return load


def _frame(device: Any, scene: Any, on_gpu: GpuScene | None = None, **options: Any) -> HybridFrame:
    prepared = scene if isinstance(scene, PreparedScene) else prepare(scene, FAST)
    return HybridFrame(device, prepared, FrameOptions(*SIZE, motion=True, **options), on_gpu)


def _motion(frame: HybridFrame, sample: int = 1, **inputs: Any) -> Any:
    assert frame.run(0, sample, inputs=replace(frame.inputs, **inputs)).valid
    return frame.aov("motion")


def _pixels(camera: Any, points: Any) -> Any:
    """[n, 2] where a camera sees points of the world [n, 3]."""
    clip = (
        np.c_[points, np.ones(len(points))]
        @ (camera.projection(SIZE[0] / SIZE[1]) @ camera.view_matrix()).T
    )
    return (0.5 + 0.5 * clip[:, :2] / clip[:, 3:] * [1, -1]) * SIZE


def _seen(frame: HybridFrame) -> tuple[Any, Any, Any, Any]:
    """Of covered pixels: which they are, the instance, the triangle, [n, 3] weights."""
    words = frame.data.read_texture("visibility")
    covered = words[..., 0] != 0xFFFFFFFF
    v = words[covered]
    uv = np.ascontiguousarray(v[:, 2:]).view(np.float32).astype(float).clip(0, 1)
    weights = np.c_[1 - uv.sum(axis=1), uv]
    return covered, v[:, 0], v[:, 1].astype(np.int64), weights


def _points(scene: Scene, objects: Any, triangles: Any, weights: Any) -> Any:
    """[n, 3] where those points of triangles are in a scene."""
    found = np.zeros((len(objects), 3))
    for number in np.unique(objects):
        rows = objects == number
        item = scene.instances[number]
        mesh = scene.meshes[item.mesh]
        corners = mesh.positions[mesh.triangles[triangles[rows]]].astype(float)
        local = np.einsum("nk,nkj->nj", weights[rows], corners)
        found[rows] = local @ item.transform[:3, :3].T + item.transform[:3, 3]
    return found


def test_nothing_where_it_is_not_asked_for(device: Any, kit: Any) -> None:
    frame = HybridFrame(device, prepare(kit.scene([kit.box()]), FAST), FrameOptions(*SIZE))
    assert "motion" not in {o.name for o in frame.outputs()} | set(frame.data.resources)
    assert not [p for p in frame.passes if p.name.startswith("motion")]
    frame.run()
    with pytest.raises(UserError, match="unknown aov 'motion'"):
        frame.aov("motion")


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_a_still_camera_sees_no_motion(device: Any, kit: Any, gbuffer: str) -> None:
    frame = _frame(device, kit.room(), gbuffer=gbuffer)
    for sample in (1, 2, 1):
        assert not _motion(frame, sample).any()


def test_a_camera_that_moves_sideways(device: Any, kit: Any) -> None:
    """Before a wall at a known distance: every pixel by the same way, against the camera's."""
    wall = kit.quad((-50, -50, 0), (100, 0, 0), (0, 100, 0))
    scene = kit.scene([wall], eye=(0, 0, 8), target=(0, 0, 0), y_fov=1.0)
    frame = _frame(device, scene)
    assert not _motion(frame).any()
    camera = look_at(np.array([0.3, -0.1, 8.0]), np.array([0.3, -0.1, 0.0]), 1.0)
    focal = SIZE[1] / 2 / np.tan(0.5)  # pixels
    moved = _motion(frame, camera=camera)
    np.testing.assert_allclose(moved, np.full(moved.shape, [-0.3, -0.1]) * focal / 8, atol=EXACT)
    # A further sample belongs to the picture; the next picture comes after this one.
    assert (_motion(frame, 2) == moved).all()
    assert not _motion(frame).any()
    back = _motion(frame, previous_camera=scene.camera)
    np.testing.assert_allclose(back, moved, atol=EXACT)


def test_the_sky_turns_with_the_camera(device: Any, kit: Any) -> None:
    """By the tangents of the angles; a step aside changes nothing so far away."""
    scene = kit.scene([kit.box()], eye=(0, 0, 5), target=(0, 0, 10), y_fov=1.0)
    frame = _frame(device, scene)
    _motion(frame)
    turn, focal = 0.05, SIZE[1] / 2 / np.tan(0.5)
    aim = np.array([2 + np.sin(turn), 0.0, 5 + np.cos(turn)])  # towards +X: the picture's left
    moved = _motion(frame, camera=look_at(np.array([2.0, 0, 5]), aim, 1.0))
    x, y = np.meshgrid(*(np.arange(n) + 0.5 - n / 2 for n in SIZE))
    angle = np.arctan2(x, focal) - turn
    was = np.stack([focal * np.tan(angle), y / np.hypot(x, focal) * focal / np.cos(angle)], -1)
    np.testing.assert_allclose(moved, np.stack([x, y], -1) - was, atol=EXACT)


def test_what_was_behind_the_camera_came_from_nowhere(device: Any, kit: Any) -> None:
    scene = kit.scene([kit.box()], eye=(0, 0, 5), target=(0, 0, 0))
    frame = _frame(device, scene)
    behind = look_at(np.array([0, 0, -5.0]), np.array([0, 0, -9.0]), 0.7)
    moved = _motion(frame, previous_camera=behind)
    covered = _seen(frame)[0]
    assert np.isfinite(moved).all() and covered.any() and not moved[covered].any()


@pytest.mark.parametrize(("name", "clip"), MOVING)
def test_what_moves_in_the_scene(
    device: Any, scene_of: Callable[[str], PreparedScene], name: str, clip: str
) -> None:
    """Skinned vertices and turning wheels, against both poses on the CPU, with a moving camera."""
    prepared = scene_of(name)
    scene = prepared.scene
    assert scene.animation is not None
    found = scene.animation.clip(clip)
    times = 0.2 * found.duration, 0.3 * found.duration
    on_gpu = GpuScene(device, prepared)
    frame, other = _frame(device, prepared, on_gpu), _frame(device, prepared, on_gpu)
    assert not _motion(frame, clip=clip, time=times[0]).any()
    _motion(other, clip=clip, time=0.7 * found.duration)  # another frame's pose is not this one's
    shift = np.eye(4)
    shift[:3, 3] = 0.02 * np.ptp(scene.bounds(), axis=0)
    camera = replace(scene.camera, transform=shift @ scene.camera.transform)
    moved = _motion(frame, clip=clip, time=times[1], camera=camera)
    covered, objects, triangles, weights = _seen(frame)
    assert covered.mean() > 0.05
    before, after = (
        _points(posed(scene, found, time), objects, triangles, weights) for time in times
    )
    expected = _pixels(camera, after) - _pixels(scene.camera, before)
    np.testing.assert_allclose(moved[covered], expected, atol=10 * EXACT)
    still = _pixels(camera, after) - _pixels(scene.camera, after)
    assert np.abs(expected - still).max() > 0.5  # so that the test can tell
    twins = frame.run_cpu("motion")
    same = (twins["visibility"] == frame.data.read_texture("visibility"))[..., :2].all(axis=-1)
    by_twin = twins["motion"].reshape(moved.shape)
    assert same.mean() > 0.95
    np.testing.assert_allclose(moved[same], by_twin[same], atol=EXACT)
    assert not _motion(frame, clip=clip, time=times[1]).any()
    # From a pose to rest and back.
    away, home = _motion(frame, clip=None), _motion(frame, clip=clip, time=times[1])
    assert away.any() and home.any() and not _motion(frame).any()


def test_a_picture_that_is_drawn_again_keeps_its_motion(device: Any, kit: Any) -> None:
    """Too small a queue makes a frame invalid: the one in its place moves from the last valid."""
    scene = kit.scene([kit.quad((-9, 0, 9), (18, 0, 0), (0, 0, -18))], eye=(0, 3, 5))
    frame = _frame(device, scene, queue_fraction=0.5)
    frame.render()
    camera = look_at(np.array([0.4, 3.0, 5.0]), np.zeros(3), scene.camera.y_fov)
    moved = _motion(frame, camera=camera)
    assert moved.any()
    small = _frame(device, scene, queue_fraction=0.01)
    up = look_at(scene.camera.position, np.array([0, 7.0, -5.0]), scene.camera.y_fov)
    assert not _motion(small, camera=up).any()  # the sky needs no queue
    assert not small.run(0, inputs=replace(small.inputs, camera=scene.camera)).valid
    whole = _frame(device, scene)
    _motion(whole, camera=up)
    expected = _motion(whole, camera=scene.camera)
    found = _motion(small)
    assert expected.any()
    np.testing.assert_allclose(found, expected, atol=EXACT)
    for _ in small.steps(inputs=replace(small.inputs, camera=camera), budget_ms=0.01):
        break  # left: no picture came of it
    np.testing.assert_allclose(_motion(small, camera=camera), moved, atol=EXACT)


def test_shown_by_hue_and_brightness(device: Any, kit: Any) -> None:
    scene = kit.scene([kit.box()], eye=(0, 0, 5))
    frame = _frame(device, scene, gbuffer="rays")
    _motion(frame)
    camera = look_at(np.array([0.4, 0.3, 4.6]), np.array([0.1, 0, 0]), scene.camera.y_fov)
    moved = _motion(frame, camera=camera)
    display = DisplayPass(device, *SIZE)
    for value_range in (None, (0.0, 3.0)):
        display.show(frame, "motion", "viridis", value_range)
        uniforms = np.zeros((), DISPLAY_UNIFORMS.dtype)
        uniforms["high"] = FULL_MOTION if value_range is None else 3.0
        shown = np.zeros((SIZE[1], SIZE[0], 4), np.uint8)
        arrays = read_resources(frame.data, frame.inputs)
        display_motion(arrays["frame"], uniforms, arrays["motion"], shown)
        picture = display.read_picture()
        assert np.abs(picture.astype(int) - shown[..., :3]).max() <= 1 and picture.any()
    assert display.auto_range("motion") == (0.0, FULL_MOTION)
    right, down = moved[20, 30]
    assert display.read_value(frame, "motion", 30, 20) == f"{right:+.2f} {down:+.2f} pixels"
    # To the right is red, down and to the left green.
    for way, main in (([5, 0], 0), ([-3, 5], 1), ([-3, -5], 2)):
        shown = np.zeros((SIZE[1], SIZE[0], 4), np.uint8)
        motion = np.full((SIZE[0] * SIZE[1], 2), way, np.float32)
        display_motion(arrays["frame"], uniforms, motion, shown)
        assert shown[0, 0, :3].argmax() == main
    assert not _motion(frame).any()
    display.show(frame, "motion")
    assert not display.read_picture().any()
