"""A reflection probe in a closed room of six colours: the right wall in each direction, from
wherever one looks."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.scene.camera import look_at
from engine.scene.light import Environment
from passes.frame_uniforms import pack_uniforms
from passes.twins.octahedral import octahedral_fold
from passes.twins.probe import probe_cone, probe_radiance
from passes.twins.probe_layout import level_sizes, octahedral_direction, octahedral_place

LOW, HIGH = np.array([-2.0, 0.0, -3.0]), np.array([3.0, 2.5, 2.0])
# By axis and side: x low, x high, y low and so on.
COLORS = np.array([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1)], np.float32)
BLACK = (0.0, 0.0, 0.0)


def make_room(kit: Any, walls: int = 6, **view: Any) -> Any:
    size = HIGH - LOW
    x, y, z = np.diag(size)
    quads = [
        kit.quad(LOW, y, z, 0),
        kit.quad(LOW + x, z, y, 1),
        kit.quad(LOW, z, x, 2),
        kit.quad(LOW + y, x, z, 3),
        kit.quad(LOW, x, y, 4),
        kit.quad(LOW + z, y, x, 5),
    ]
    kinds = [kit.grey(0.0, emissive=tuple(color.tolist()), roughness=1.0) for color in COLORS]
    scene = kit.scene(
        quads[:walls], kinds, eye=(1.4, 0.7, 1.2), light=kit.lamp((0, 2, 0), radiance=BLACK), **view
    )
    return scene


@pytest.fixture(scope="module")
def room(kit: SimpleNamespace, draw: Any) -> Any:
    return draw(make_room(kit), 16, 8, reflections="screen", shadow_map_size=128, probe_size=128)


def read(drawn: Any) -> tuple[Any, Any]:
    frame = drawn.frame
    uniforms = pack_uniforms(frame.inputs, 16, 8, frame.scene.bases)
    return uniforms, frame.data.targets.read_probe()


def walls_hit(position: Any, direction: Any) -> tuple[Any, Any]:
    """[n] which wall a ray from inside hits, and how far from the wall's nearest edge, metres."""
    with np.errstate(divide="ignore"):
        t = (np.where(direction > 0, HIGH, LOW) - position) / direction
    axis = t.argmin(1)
    at = position + t.min(1)[:, None] * direction
    edge = np.minimum(at - LOW, HIGH - at)
    edge[np.arange(len(axis)), axis] = np.inf
    return 2 * axis + (direction[np.arange(len(axis)), axis] > 0), edge.min(1)


def right_walls(drawn: Any, rng: np.random.Generator) -> Any:
    """Part of random lookups from anywhere in the room that show the wall that is there."""
    uniforms, probe = read(drawn)
    position = rng.uniform(LOW + 0.1, HIGH - 0.1, (3000, 3))
    direction = rng.normal(size=(3000, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    wall, edge = walls_hit(position, direction)
    at = [v.astype(np.float32) for v in (position, direction)]
    shown = probe_radiance(uniforms, probe, *at, np.zeros(3000, np.float32))
    # A texel is about 0.03 radians, some 10 cm on the far walls.
    clear = edge > 0.25
    assert clear.mean() > 0.5 and len(np.unique(wall[clear])) == 6
    close = np.isclose(shown, COLORS[wall], atol=0.02).all(1)
    # Without the correction for where one stands many would show another wall.
    far, _ = walls_hit(np.broadcast_to(drawn.frame.inputs.probe_origin, (3000, 3)), direction)
    assert (far != wall)[clear].mean() > 0.15
    return close[clear].mean()


def test_each_direction_shows_its_wall(room: Any, rng: np.random.Generator) -> None:
    # A wall that the probe sees edge-on has larger texels.
    assert right_walls(room, rng) > 0.98


def test_a_kept_probe_is_looked_up_from_where_it_was_drawn(
    room: Any, rng: np.random.Generator
) -> None:
    frame, inputs = room.frame, room.frame.inputs
    camera = look_at(np.array([-0.6, 1.9, -1.4]), np.array([2.0, 1.0, 1.0]), inputs.camera.y_fov)
    moved = replace(inputs, camera=camera, camera_moves=True, probe_distance=5.0)
    assert "probe/light" in frame.run(0, inputs=moved).reused
    assert right_walls(room, rng) > 0.98
    uniforms, probe = read(room)
    wrong = uniforms.copy()
    wrong["probe_origin"][:3] = camera.position
    at = np.float32([[0.5, 1.2, -0.5]] * 400), rng.normal(size=(400, 3)).astype(np.float32)
    sharp = np.zeros(400, np.float32)
    right, other = (probe_radiance(u, probe, *at, sharp) for u in (uniforms, wrong))
    assert (~np.isclose(right, other, atol=0.1)).any(1).mean() > 0.2
    frame.run(0, inputs=inputs)


def test_rough_surfaces_are_shown_more_of_the_room(room: Any) -> None:
    uniforms, probe = read(room)
    position = np.tile(np.float32([0.5, 1.2, -0.5]), (3, 1))
    ahead = np.tile(np.float32([1, 0, 0]), (3, 1))
    shown = probe_radiance(uniforms, probe, position, ahead, np.float32([0.0, 0.4, 1.0]))
    np.testing.assert_allclose(shown[0], COLORS[1], atol=0.01)
    other = shown[:, [0, 2]].sum(1)
    assert other[0] < 0.01 < other[1] + 0.02 and other[2] > 0.2 and other[2] > other[1]
    # Every level has the mean of all: nothing is lost or made.
    size = probe.shape[0]
    corner = (size, size - (size >> (len(level_sizes(size)) - 2)))
    last = probe[corner[1] :, corner[0] : corner[0] + 4][:4]
    np.testing.assert_allclose(last.mean((0, 1)), probe[:, :size].mean((0, 1)), atol=1e-5)


def test_where_nothing_stands_the_sky_is_shown(kit: Any, draw: Any) -> None:
    """The wall at x = 3 and the two at z are left out."""
    scene = make_room(kit, 5)
    scene = replace(scene, instances=tuple(i for k, i in enumerate(scene.instances) if k != 1))
    sky = Environment((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (0.7, 0.8, 0.9))
    drawn = draw(
        replace(scene, environment=sky),
        16,
        8,
        reflections="screen",
        shadow_map_size=128,
        probe_size=64,
        probe_position="scene",
    )
    np.testing.assert_allclose(drawn.frame.inputs.probe_origin, (LOW + HIGH) / 2)
    uniforms, probe = read(drawn)
    position = np.tile(np.float32([0.5, 1.2, -0.5]), (2, 1))
    ahead = np.float32([[1, 0.1, 0], [-1, 0.1, 0]])
    shown, covered = probe_cone(uniforms, probe, position, ahead, np.zeros(2, np.float32))
    assert covered.tolist() == [0.0, 1.0]
    height = 0.1 / np.hypot(1, 0.1)
    horizon, zenith = np.array(sky.horizon), np.array(sky.zenith)
    np.testing.assert_allclose(shown[0], horizon + (zenith - horizon) * np.sqrt(height), rtol=1e-4)
    lit_by_sky = np.array([1, 0, 0])
    assert (shown[1] >= lit_by_sky - 1e-3).all()


def test_octahedral_places(rng: np.random.Generator) -> None:
    place = rng.uniform(0, 1, (500, 2)).astype(np.float32)
    direction = octahedral_direction(place)
    np.testing.assert_allclose(np.linalg.norm(direction, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(octahedral_place(3 * direction), place, atol=1e-6)
    assert (octahedral_fold(np.float32([[0.9, 0.8]])) <= 1).all()
