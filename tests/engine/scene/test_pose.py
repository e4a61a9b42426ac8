"""A scene posed on the CPU, and what of it moves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.load import load_scene
from engine.scene.pose import check_time, moves, posed, rigid_steps, timeline, ways_back
from engine.scene.scene import Scene


@pytest.fixture(scope="module")
def truck(shared_scenes: Any) -> Scene:
    return load_scene(shared_scenes / "CesiumMilkTruck.glb")


def test_wheels_turn_about_their_axles(truck: Scene) -> None:
    assert truck.animation is not None
    clip = truck.animation.clip()
    quarter = posed(truck, clip, 0.25 * clip.duration)
    moved = [
        i
        for i, (now, then) in enumerate(zip(quarter.instances, truck.instances, strict=True))
        if not np.array_equal(now.transform, then.transform)
    ]
    assert [truck.instances[i].lifetime for i in moved] == ["rigid", "rigid"]
    for i in moved:
        now, then = quarter.instances[i].transform, truck.instances[i].transform
        np.testing.assert_allclose(now[:3, 3], then[:3, 3], atol=1e-6)
        turned = now[:3, :3] @ np.linalg.inv(then[:3, :3])
        np.testing.assert_allclose(turned @ turned.T, np.eye(3), atol=1e-6)
        assert np.degrees(np.arccos((np.trace(turned) - 1) / 2)) > 30
    assert quarter.meshes == truck.meshes


def test_skin_follows_its_joints_whatever_its_node(shared_scenes: Any) -> None:
    """As the importer reads a file that stands in that pose; in the object's own space."""
    fox = load_scene(shared_scenes / "Fox.glb")
    assert fox.animation is not None
    clip = fox.animation.clip("Run")
    there = posed(fox, clip, 0.3).meshes[0].positions
    move = np.eye(4)
    move[:3, 3] = [1.0, -2.0, 3.0]
    placed = replace(fox, instances=(replace(fox.instances[0], transform=move),))
    np.testing.assert_allclose(
        posed(placed, clip, 0.3).meshes[0].positions, there - move[:3, 3], atol=1e-5
    )
    lengths = np.linalg.norm(posed(fox, clip, 0.3).meshes[0].normals, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 1.0, atol=1e-6)


def test_steps_from_where_nodes_stood(rng: Any) -> None:
    rest, now = (np.broadcast_to(np.eye(4), (4, 4, 4)).copy() for _ in range(2))
    rest[:, :3], now[:, :3] = rng.normal(size=(2, 4, 3, 4))
    rest[2, :3, :3] = 0  # flattened
    steps = rigid_steps(ways_back(rest), now)
    np.testing.assert_allclose((steps @ rest)[[0, 1, 3]], now[[0, 1, 3]], atol=1e-9)
    assert (steps[2] == np.eye(4)).all() and (steps[:, 3] == [0, 0, 0, 1]).all()


def test_what_moves(truck: Scene) -> None:
    assert moves(truck) and [span.name for span in timeline(truck)] == ["clip 0"]
    still = tuple(replace(item, lifetime="static") for item in truck.instances)
    for scene in (replace(truck, animation=None), replace(truck, instances=still)):
        assert not moves(scene) and timeline(scene) == ()
    assert truck.animation is not None
    with pytest.raises(UserError, match="animated"):
        posed(replace(truck, animation=None), truck.animation.clip(), 0.0)


def test_times_are_finite() -> None:
    assert check_time(-3.5) == -3.5
    for bad in (float("nan"), float("-inf")):
        with pytest.raises(UserError, match="finite"):
            check_time(bad)
