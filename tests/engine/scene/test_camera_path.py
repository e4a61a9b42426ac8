"""A camera path has at its keys what they say and is smooth between them."""

from typing import Any

import numpy as np
import pytest

from engine.scene.camera_path import CameraPath
from engine.scene.load import load_scene

TIMES = np.array([1.0, 2.0, 4.0, 5.0])


def _path(rng: Any, **other: Any) -> CameraPath:
    positions = rng.normal(size=(4, 3)) + [0, 0, 20]
    targets = rng.normal(size=(4, 3))
    return CameraPath(TIMES, positions, targets, np.array([0.5, 0.7, 0.9, 0.6]), **other)


def test_keys_are_met(rng: Any) -> None:
    path = _path(rng)
    for k, time in enumerate(TIMES):
        camera = path.at(time)
        np.testing.assert_allclose(camera.position, path.positions[k], atol=1e-12)
        way = path.targets[k] - path.positions[k]
        np.testing.assert_allclose(camera.forward, way / np.linalg.norm(way), atol=1e-12)
        assert camera.y_fov == pytest.approx(path.y_fovs[k])
        assert camera.transform[1, 0] == 0  # level
    np.testing.assert_array_equal(path.at(-3).transform, path.at(1).transform)
    np.testing.assert_array_equal(path.at(9).transform, path.at(5).transform)
    assert path.at(3).y_fov == pytest.approx(0.8)


def test_speed_at_a_key_is_that_of_the_parabola_through_its_neighbours(rng: Any) -> None:
    path = _path(rng)
    fit = np.polyfit(TIMES[:3] - 2, path.positions[:3], 2)
    for side in (-1e-5, 1e-5):
        speed = (path.at(2 + side).position - path.positions[1]) / side
        np.testing.assert_allclose(speed, fit[1], atol=1e-3)


def test_even_times_are_catmull_rom(rng: Any) -> None:
    points = rng.normal(size=(4, 3))
    times = np.arange(4.0)
    path = CameraPath(times, points, points + [0, 0, -9], np.full(4, 0.7))
    a, b, c, d = points
    # the middle of Catmull and Rom's segment: (-1, 9, 9, -1) / 16
    np.testing.assert_allclose(path.at(1.5).position, (9 * (b + c) - a - d) / 16)


def test_a_closed_path_repeats_and_passes_its_end_smoothly() -> None:
    angle = np.linspace(0, 2 * np.pi, 9)
    positions = 5 * np.stack([np.cos(angle), 0 * angle, np.sin(angle)], axis=1)
    path = CameraPath(np.arange(9.0), positions, np.zeros((9, 3)), np.full(9, 0.7), loop=True)
    np.testing.assert_allclose(path.at(11).position, path.at(3).position)
    np.testing.assert_allclose(path.at(-1).position, path.at(7).position)
    before, after = path.at(8 - 1e-5).position, path.at(1e-5).position
    np.testing.assert_allclose((after - before) / 2e-5, [0, 0, 5 * np.sin(np.pi / 4)], atol=1e-3)


def test_curves_that_meet_keep_a_direction() -> None:
    positions = np.array([[0.0, 0, 1], [0, 0, -1]])
    path = CameraPath(np.array([0.0, 1]), positions, -positions, np.full(2, 0.7))
    assert np.isfinite(path.at(0.5).transform).all()


def test_a_scene_file_has_one(scene_file: Any) -> None:
    text = '[files]\none = "one.glb"\n[[objects]]\nfile = "one"\n[camera_path]\nloop = true\n'
    text += "keys = [{time = 1, position = [0, 0, 4], target = [0, 0, 0], fov = 90},"
    text += "{time = 3, position = [0, 0, 8], target = [0, 1, 0]}]\n"
    scene = load_scene(scene_file(text))
    path = scene.camera_path
    assert path is not None and path.loop and path.duration == 2.0
    np.testing.assert_allclose(scene.camera.position, [0, 0, 4])
    assert scene.camera.y_fov == pytest.approx(np.pi / 2)
    assert path.at(1.0).near == scene.camera.near
    np.testing.assert_allclose(path.at(2.0).position, [0, 0, 6])
    text += "[camera]\nposition = [0, 0, 9]\ntarget = [0, 0, 0]\n"
    assert load_scene(scene_file(text)).camera.position[2] == 9
