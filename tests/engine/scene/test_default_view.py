"""The stated camera, light and sky of files that bring none."""

from dataclasses import replace

import numpy as np
import pytest

from engine.scene.beam import beam_distances
from engine.scene.camera import Camera, look_at
from engine.scene.default_view import with_default_view
from engine.scene.light import DEFAULT_ENVIRONMENT
from engine.scene.load import load_scene
from engine.scene.mesh import make_mesh
from engine.scene.scene import Instance, Parts

CUBE = np.float64([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
CUBE_FACES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]]
    + [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
)


def box(low, high, name="box"):
    low, high = np.asarray(low, float), np.asarray(high, float)
    return make_mesh(name, low + CUBE * (high - low), CUBE_FACES)


def parts(*meshes, camera=None):
    instances = tuple(Instance(m.name, i, np.eye(4)) for i, m in enumerate(meshes))
    return Parts(tuple(meshes), (), (), instances, camera=camera)


def irradiance(light, point, normal, count=64):
    """At `point`, by a midpoint sum over the light's square."""
    grid = (np.arange(count) + 0.5) / count * 2 - 1
    u, v = (g.reshape(-1, 1) for g in np.meshgrid(grid, grid))
    ray = light.center + u * light.half_u + v * light.half_v - point
    distance = np.linalg.norm(ray, axis=1)
    cosines = (ray @ normal).clip(0) * (-ray @ light.normal).clip(0) / distance**2
    return light.radiance[0] * light.area * float((cosines / distance**2).mean())


@pytest.mark.parametrize("size", [(1, 1, 1), (20, 1, 3), (0.01, 5, 0.01), (1e4, 1e4, 1e4)])
@pytest.mark.parametrize("at", [0.0, 1000.0])
def test_object_fills_the_picture_and_is_lit(size, at):
    size = np.array(size)
    scene = with_default_view(parts(box(at - size / 2, at + size / 2)), "x")
    assert (scene.camera_source, scene.light_source) == ("default", "default")
    assert scene.environment == DEFAULT_ENVIRONMENT
    corners = np.c_[at + (CUBE - 0.5) * size, np.ones(8)]
    clip = corners @ (scene.camera.projection(1.0) @ scene.camera.view_matrix()).T
    screen = np.abs(clip[:, :2] / clip[:, 3:])
    assert (clip[:, 3] > 0).all() and 0.85 < screen.max() < 1
    center = np.full(3, at)
    assert scene.light.center[1] > at + size[1] / 2, "above the object"
    towards = scene.light.center - center
    towards /= np.linalg.norm(towards)
    assert irradiance(scene.light, center, towards) == pytest.approx(np.pi, rel=0.1)
    # it lights the sides that the camera sees
    assert towards @ -scene.camera.forward > 0.5


def test_room_with_a_camera_gets_a_lamp_below_its_ceiling():
    camera = look_at(np.array([0.5, 1.5, 3.5]), np.array([0.5, 1.4, -3.0]), 0.8)
    room = box((-3, 0, -4), (3, 2.8, 4), "room")
    beam = box((0.4, 2.5, -4), (0.6, 2.8, 4), "beam")
    scene = with_default_view(parts(room, beam, camera=camera), "x")
    center, half = scene.light.center, np.abs(scene.light.half_u) + np.abs(scene.light.half_v)
    assert (scene.camera_source, scene.light_source) == ("file", "default")
    np.testing.assert_allclose(scene.light.normal, [0, -1, 0], atol=1e-12)
    assert ((center - half > [-3, 1.5, -4]) & (center + half < [3, 2.5, 4])).all()
    assert camera.forward @ (center - camera.position) > 0, "in front of the camera"
    focus = np.array([0.5, 1.4, -4.0])
    towards = (center - focus) / np.linalg.norm(center - focus)
    assert np.pi / 4 < irradiance(scene.light, focus, towards) < 4 * np.pi


def test_open_scene_with_a_camera():
    camera = look_at(np.array([0.0, 1.0, 5.0]), np.array([0.0, 0.5, 0.0]), 0.8)
    ground = box((-50, -1, -50), (50, 0, 50), "ground")
    thing = box((-0.5, 0, -0.5), (0.5, 1, 0.5), "thing")
    scene = with_default_view(parts(ground, thing, camera=camera), "x")
    center = scene.light.center
    assert 3 < center[1] < 8 and abs(center[2]) < 5, "sized by the view, not by the ground"
    focus = np.array([0, 0.55, 0.5])
    assert scene.light.normal @ (focus - center) > 0
    facing = (center - focus) / np.linalg.norm(center - focus)
    assert irradiance(scene.light, focus, facing) == pytest.approx(np.pi, rel=0.1)


def test_camera_that_sees_nothing_still_gives_a_light():
    away = look_at(np.array([0.0, 0.5, 5.0]), np.array([0.0, 0.5, 9.0]), 0.8)
    straight_down = Camera(np.eye(4)[[0, 2, 1, 3]] * (1, 1, 1, 1), 0.8)
    for camera in (away, straight_down):
        scene = with_default_view(parts(box((0, 0, 0), (1, 1, 1)), camera=camera), "x")
        assert np.isfinite(scene.light.center).all() and scene.light.radiance[0] > 0


def test_flat_and_tiny_scenes():
    triangle = make_mesh("t", np.float32([[0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))
    point = make_mesh("p", np.ones((3, 3)), np.array([[0, 1, 2]]))
    for mesh in (triangle, point):
        scene = with_default_view(parts(mesh), "x")
        assert np.isfinite(scene.camera.transform).all() and scene.light.area > 0


def test_same_scene_gives_the_same_view(shared_scenes):
    first, second = (load_scene(shared_scenes / "spot.obj") for _ in range(2))
    np.testing.assert_array_equal(first.camera.transform, second.camera.transform)
    np.testing.assert_array_equal(first.light.center, second.light.center)


def test_kitchen_lamp_hangs_in_the_room(shared_scenes):
    scene = load_scene(shared_scenes / "kitchen.glb")
    light = scene.light
    low, high = scene.bounds()
    assert (light.center > low).all() and (light.center < high).all()
    assert light.normal[1] == pytest.approx(-1)
    # the camera sees the lamp, and the lamp sees the floor or something above it
    ray = light.center - scene.camera.position
    distance = float(np.linalg.norm(ray))
    free = beam_distances(
        scene.meshes, scene.instances, ray / distance, scene.camera.position[None]
    )
    assert free[0] > 0.99 * distance
    below = beam_distances(scene.meshes, scene.instances, light.normal, light.center[None])
    assert 1.0 < below[0] < 3.4


def test_beam_against_a_box(rng):
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    placed = np.eye(4)
    placed[:3, :3] = turn * 2
    placed[:3, 3] = [5, 6, 7]
    mesh = box((-1, -1, -1), (1, 1, 1))
    instance = Instance("b", 0, placed)
    direction = turn[:, 0]
    local = np.array([[-3, 0.2, 0.4], [0, 0.2, 0.4], [-3, 0.2, 1.1], [1.5, 0, 0]])
    origins = local @ placed[:3, :3].T + placed[:3, 3]
    distances = beam_distances((mesh,), (instance,), direction, origins)
    np.testing.assert_allclose(distances, [4, 2, np.inf, np.inf], atol=1e-9)


def test_projection_is_reversed_and_infinite():
    camera = replace(look_at(np.array([1.0, 2, 3]), np.array([1.0, 2, -7]), 1.0), near=0.25)
    matrix = camera.projection(2.0) @ camera.view_matrix()
    for distance, depth in ((0.25, 1.0), (2.5, 0.1), (2.5e8, 1e-9)):
        clip = matrix @ [1, 2, 3 - distance, 1]
        assert clip[3] == pytest.approx(distance)
        assert clip[2] / clip[3] == pytest.approx(depth)
        np.testing.assert_allclose(clip[:2], 0, atol=1e-12)
    # the top edge of the picture, and the right edge at twice the width
    edge = np.tan(0.5)
    np.testing.assert_allclose((matrix @ [1, 2 + edge, 2, 1])[1], 1.0)
    np.testing.assert_allclose((matrix @ [1 + 2 * edge, 2, 2, 1])[0], 1.0)
    np.testing.assert_allclose(camera.view_matrix() @ camera.transform, np.eye(4), atol=1e-12)
