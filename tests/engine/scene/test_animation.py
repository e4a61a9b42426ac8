"""Clips are sampled as glTF says, and poses follow from them."""

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation, Slerp

from engine.gpu.errors import UserError
from engine.scene.animation import Clip, compose
from engine.scene.channel import INTERPOLATIONS, Channel, ChannelTable, Clock, slerp
from engine.scene.gltf_data import open_gltf
from engine.scene.gltf_nodes import placed_nodes
from engine.scene.load import load_scene
from engine.scene.skin import blend_matrices, skin_positions

TIMES = np.array([0.5, 1.0, 2.5])


def _channel(path: str, interpolation: str, values: Any) -> Channel:
    return Channel(0, path, interpolation, TIMES, np.asarray(values, np.float64))


def test_step_holds_and_ends_clamp() -> None:
    channel = _channel("scale", "STEP", [[1, 1, 1], [2, 2, 2], [3, 3, 3]])
    for time, expected in ((-1, 1), (0.5, 1), (0.99, 1), (1.0, 2), (2.4999, 2), (2.5, 3), (9, 3)):
        assert (channel.sample(time) == expected).all()


def test_linear_is_a_chord_for_vectors_and_an_arc_for_rotations(rng: Any) -> None:
    values = rng.normal(size=(3, 3))
    channel = _channel("translation", "LINEAR", values)
    np.testing.assert_allclose(channel.sample(1.75), 0.5 * (values[1] + values[2]))
    np.testing.assert_allclose(channel.sample(0.0), values[0])
    turns = Rotation.random(3, random_state=4)
    quaternions = turns.as_quat() * [[1], [-1], [3]]  # either sign and any length: one rotation
    turning = _channel("rotation", "LINEAR", quaternions)
    exact = Slerp(TIMES, turns)
    for time in (0.5, 0.6, 0.99, 1.0, 1.7, 2.49):
        got = Rotation.from_quat(turning.sample(time))
        assert (got.inv() * exact(time)).magnitude() < 1e-7
        assert abs(np.linalg.norm(turning.sample(time)) - 1) < 1e-12


def test_slerp_of_equal_rotations_stays() -> None:
    q = np.array([0.0, 0.6, 0.0, 0.8])
    np.testing.assert_allclose(slerp(q, -q, 0.3), q)


def test_cubic_spline_is_hermite_with_tangents_a_second(rng: Any) -> None:
    values = rng.normal(size=(3, 3, 3))
    channel = _channel("translation", "CUBICSPLINE", values)
    for first in range(2):
        part = slice(first, first + 2)
        slopes = np.stack([values[first, 2], values[first + 1, 0]])
        exact = CubicHermiteSpline(TIMES[part], values[part, 1], slopes)
        for at in (0.0, 0.2, 0.7):
            time = TIMES[first] + at * (TIMES[first + 1] - TIMES[first])
            np.testing.assert_allclose(channel.sample(time), exact(time), atol=1e-12)
    np.testing.assert_allclose(channel.sample(7), values[2, 1])
    turning = _channel("rotation", "CUBICSPLINE", rng.normal(size=(3, 3, 4)))
    assert abs(np.linalg.norm(turning.sample(1.3)) - 1) < 1e-12


def test_channels_sampled_together_are_each_what_it_is_alone(rng: Any) -> None:
    widths = {"translation": 3, "rotation": 4, "scale": 3, "weights": 2}
    channels = []
    for path, width in widths.items():
        for kind in INTERPOLATIONS:
            for keys in (1, 2, 5):
                times = np.cumsum(rng.uniform(0.1, 1.0, keys))
                shape = (keys, 3, width) if kind == "CUBICSPLINE" else (keys, width)
                clock = Clock(rng.uniform(), rng.uniform(0.5, 2), rng.choice([0.0, 1.5]))
                node = len(channels)
                channel = Channel(node, path, kind, times, rng.normal(size=shape), clock)
                channels.append(channel)
    order = rng.permutation(len(channels))
    table = ChannelTable([channels[i] for i in order])
    for time in (0.0, 0.4, 1.1, 2.3, 50.0):
        found = {
            node: values
            for path, nodes, rows in table.sample(time)
            for node, values in zip(nodes.tolist(), rows, strict=True)
            if path == channels[node].path
        }
        assert sorted(found) == list(range(len(channels)))
        for node, values in found.items():
            assert (values == channels[node].sample(time)).all()
    assert list(ChannelTable([]).sample(1.0)) == []


def test_compose_is_translation_rotation_scale(rng: Any) -> None:
    turn = Rotation.random(random_state=1)
    move, size = rng.normal(size=3), rng.normal(size=3)
    (got,) = compose(move[None], 2.5 * turn.as_quat()[None], size[None])
    np.testing.assert_allclose(got[:3, :3], turn.as_matrix() * size)
    np.testing.assert_allclose(got[:3, 3], move)
    (still,) = compose(move[None], np.zeros((1, 4)), np.ones((1, 3)))
    np.testing.assert_allclose(still[:3, :3], np.eye(3))


@pytest.mark.parametrize("name", ["Fox.glb", "CesiumMilkTruck.glb", "lumberjack.glb"])
def test_without_a_clip_nodes_stand_as_in_the_file(shared_scenes: Any, name: str) -> None:
    path = shared_scenes / name
    scene = load_scene(path)
    assert scene.animation is not None
    worlds = scene.animation.worlds()
    for placed in placed_nodes(open_gltf(path, path.read_bytes())):
        np.testing.assert_allclose(worlds[placed.index], placed.world, atol=1e-9)
    for item in scene.animation.skinned:
        blended = blend_matrices(
            scene.animation.joint_matrices(item.skin, worlds), item.joints, item.weights
        )
        posed = skin_positions(item.positions, blended)
        np.testing.assert_allclose(scene.meshes[item.mesh].positions, posed, atol=2e-5)


def test_a_clip_repeats_or_stays(shared_scenes: Any) -> None:
    animation = load_scene(shared_scenes / "Fox.glb").animation
    assert animation is not None
    assert [clip.name for clip in animation.clips] == ["Survey", "Walk", "Run"]
    walk = animation.clip("Walk")
    assert animation.clip() is animation.clips[0]
    first, last = animation.worlds(walk, 0.0), animation.worlds(walk, walk.duration)
    again = animation.worlds(walk, 2 * walk.duration + 0.1)
    np.testing.assert_allclose(again, animation.worlds(walk, 0.1), atol=1e-9)
    stays = animation.worlds(walk, 2 * walk.duration + 0.1, loop=False)
    np.testing.assert_array_equal(stays, last)
    assert np.abs(first - animation.worlds(walk, 0.3)).max() > 0.1
    with pytest.raises(UserError, match="'Survey', 'Walk', 'Run'"):
        animation.clip("Swim")


def test_wheels_turn_and_the_truck_stays(shared_scenes: Any) -> None:
    scene = load_scene(shared_scenes / "CesiumMilkTruck.glb")
    animation = scene.animation
    assert animation is not None and not animation.skinned
    clip = animation.clip()
    moving = animation.moving_instances(clip)
    assert [scene.instances[i].name for i in moving] == ["Wheels", "Wheels#2"]
    assert [i for i, x in enumerate(scene.instances) if x.lifetime == "rigid"] == list(moving)
    worlds = animation.worlds(clip, 0.4 * clip.duration)
    for i, instance in enumerate(scene.instances):
        now = worlds[animation.instance_nodes[i]]
        assert (np.abs(now - instance.transform).max() > 1e-3) == (i in moving)


def _animated(glb: Any, corners: Any, **sampler: Any) -> None:
    node = glb.node(mesh=glb.mesh(glb.primitive(corners)))
    item = {
        "input": glb.accessor([0.0, 1.0]),
        "output": glb.accessor([[0.0, 0, 0], [1, 2, 3]]),
        **sampler,
    }
    target = {"node": node, "path": "translation"}
    glb.add("animations", {"samplers": [item], "channels": [{"sampler": 0, "target": target}]})


def test_a_moved_node_by_hand(glb: Any, write: Any, corners: Any) -> None:
    _animated(glb, corners)
    animation = load_scene(write(glb)).animation
    assert animation is not None
    clip = animation.clip("clip 0")
    np.testing.assert_allclose(animation.worlds(clip, 0.25)[0, :3, 3], [0.25, 0.5, 0.75])
    assert animation.moving_instances(clip) == (0,)
    other = animation.renumbered({0: 4}, [0, 0])
    assert other.moving_instances(clip) == (0, 1)


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda glb: {"input": glb.accessor([1.0, 1.0])}, "do not rise"),
        (lambda glb: {"input": glb.accessor([0.0, 1.0, 2.0])}, "2 values for 3 times"),
        (lambda glb: {"interpolation": "CUBICSPLINE"}, "2 values for 2 times"),
        (lambda glb: {"interpolation": "BEZIER"}, "BEZIER"),
        (lambda glb: {"output": glb.accessor([[0.0, 0, 0], [1, np.inf, 3]])}, "not finite"),
        (lambda glb: {"output": glb.accessor([[0.0, 0], [1, 2]])}, "components"),
    ],
)
def test_damaged_clips_are_errors(
    glb: Any, write: Any, corners: Any, damage: Any, message: str
) -> None:
    _animated(glb, corners, **damage(glb))
    with pytest.raises(UserError, match=message):
        load_scene(write(glb))


def test_clips_start_wrap_and_hold() -> None:
    late = _channel("translation", "LINEAR", np.eye(3))
    clip = Clip("late", 2.5, (late,))
    assert clip.start == 0.5
    times = (-9.0, 0.0, 2.5, 2.6, 7.0, 1e9)
    assert [clip.wrapped(t) for t in times] == pytest.approx([0, 0, 2.5, 0.1, 2.0, 0.0])
    assert [clip.wrapped(t, loop=False) for t in times] == [0, 0, 2.5, 2.5, 2.5, 2.5]
    assert Clip("pose", 0.0, ()).wrapped(5.0) == Clip("pose", 0.0, ()).start == 0.0
