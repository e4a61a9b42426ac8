"""Several animated files in one scene move as each does alone, where the scene file puts them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.asset_folders import asset_folders
from engine.scene.channel import Channel, Clock
from engine.scene.load import load_scene
from engine.scene.merge_animation import common_period
from engine.scene.pose import posed
from engine.scene.scene import Scene

PLACE = "translation = [5, 0, 1]\neuler = [20, 90, 0]\nscale = [2, 2, 3]\n"


def _file(tmp_path: Path, glb: Any, corners: Any) -> None:
    """moving.glb: a wheel below a swinging arm, a post that stands, a skinned flag of two joints;
    clips "swing" of 1 s and "wave" of 0.5 s."""
    arm = glb.node(name="arm", translation=[0, 1, 0], children=[1])
    wheel = glb.mesh(glb.primitive(corners), name="wheel")
    glb.node(root=False, name="wheel", mesh=wheel, translation=[1, 0, 0])
    glb.node(name="post", mesh=glb.mesh(glb.primitive(corners), name="post"))
    low = glb.node(name="low", matrix=np.diag([1.0, 2, 1, 1]).T.ravel().tolist(), children=[4])
    high = glb.node(root=False, name="high", translation=[0, 1, 0])
    bind = np.stack([np.eye(4), np.eye(4)]).reshape(2, 16)
    glb.add("skins", {"joints": [low, high], "inverseBindMatrices": glb.accessor(bind)})
    flag = glb.primitive(
        corners,
        NORMAL=glb.accessor([[0, 0, 1]] * 3),
        JOINTS_0=glb.accessor([[0, 1, 0, 0]] * 3, "u1"),
        WEIGHTS_0=glb.accessor([[1, 0, 0, 0], [0, 1, 0, 0], [0.5, 0.5, 0, 0]]),
    )
    glb.node(name="flag", mesh=glb.mesh(flag, name="flag"), skin=0)
    for name, node, end, key in (("swing", arm, 1.0, 1.0), ("wave", high, 0.5, 0.7)):
        half = np.sin(key / 2), np.cos(key / 2)
        turns = [[0, 0, 0, 1], [0, 0, *half], [half[0], 0, 0, half[1]]]
        sampler = {
            "input": glb.accessor([0.0, end / 2, end]),
            "output": glb.accessor(turns),
        }
        target = {"node": node, "path": "rotation"}
        channels = [{"sampler": 0, "target": target}]
        glb.add("animations", {"name": name, "samplers": [sampler], "channels": channels})
    (tmp_path / "moving.glb").write_bytes(glb.data())


def _scene(text: str) -> str:
    return f'[files]\nm = "moving.glb"\none = "one.glb"\n{text}[[objects]]\nfile = "one"\n'


def _world_positions(scene: Scene, name: str) -> np.ndarray:
    (instance,) = [i for i in scene.instances if i.name == name]
    points = scene.meshes[instance.mesh].positions.astype(np.float64)
    return points @ instance.transform[:3, :3].T + instance.transform[:3, 3]


@pytest.fixture
def moving(tmp_path: Path, scene_file: Any, glb: Any, corners: Any) -> Any:
    """Writes a scene of moving.glb and one.glb, loads it, and loads moving.glb alone."""
    glb.json = type(glb)().json
    glb.blob.clear()
    _file(tmp_path, glb, corners)
    return lambda text: (
        load_scene(scene_file(_scene(text))),
        load_scene(tmp_path / "moving.glb"),
    )


def _placement(scene: Scene) -> np.ndarray:
    """Of PLACE, from what does not move in it."""
    return next(i.transform for i in scene.instances if i.name.endswith("/post"))


@pytest.mark.parametrize("clip", ["swing", "wave"])
@pytest.mark.parametrize("time", [0.0, 0.13, 0.4, 2.9])
def test_placed_it_moves_as_it_does_alone(moving: Any, clip: str, time: float) -> None:
    """At any time, with an offset and a speed, for joints, rigid nodes and what stands."""
    text = f'[[objects]]\nfile = "m"\nclip = "{clip}"\nstart = 0.3\nspeed = 0.7\n{PLACE}'
    scene, alone = moving(text)
    animation, single = scene.animation, alone.animation
    assert animation is not None and single is not None
    assert [c.name for c in animation.clips] == ["scene", "m/swing", "m/wave"]
    place = _placement(scene)
    assert np.linalg.det(place[:3, :3]) == pytest.approx(12)
    local = (0.3 + 0.7 * time) % single.clip(clip).duration
    expected = posed(alone, single.clip(clip), local)
    got = posed(scene, animation.clip("scene"), time)
    for name in ("wheel", "post", "flag"):
        there = _world_positions(expected, name) @ place[:3, :3].T + place[:3, 3]
        np.testing.assert_allclose(_world_positions(got, f"m/{name}"), there, atol=2e-6)
    # alone in the scene, on the file's own clock
    expected = posed(alone, single.clip(clip), time)
    got = posed(scene, animation.clip(f"m/{clip}"), time)
    if clip == "swing":
        there = _world_positions(expected, "wheel") @ place[:3, :3].T + place[:3, 3]
        np.testing.assert_allclose(_world_positions(got, "m/wheel"), there, atol=2e-6)
    np.testing.assert_array_equal(_world_positions(got, "one"), _world_positions(scene, "one"))


def test_at_rest_it_stands_as_at_time_zero(moving: Any) -> None:
    scene, _ = moving(f'[[objects]]\nfile = "m"\nclip = "wave"\nstart = 0.2\n{PLACE}')
    still = posed(scene, scene.animation.clip(), 0.0)
    for name in ("m/wheel", "m/post", "m/flag", "one"):
        np.testing.assert_allclose(
            _world_positions(scene, name), _world_positions(still, name), atol=1e-6
        )
    other = posed(scene, scene.animation.clip(), 0.1)
    assert np.abs(_world_positions(other, "m/flag") - _world_positions(scene, "m/flag")).max() > 0.1


def test_copies_share_what_is_rigid_and_have_skins_of_their_own(moving: Any) -> None:
    text = '[[objects]]\nfile = "m"\nclip = "wave"\nlifetime = "vegetation"\nmask = 6\n'
    text += "instances = [{translation = [0, 0, 0]}, {translation = [0, 0, 7]}]\n"
    scene, alone = moving(text)
    by_name = {i.name: i for i in scene.instances}
    for part, lifetime in (("wheel", "rigid"), ("post", "vegetation"), ("flag", "deforming")):
        first, second = by_name[f"m/{part}"], by_name[f"m#2/{part}"]
        assert (first.mesh == second.mesh) == (part != "flag")
        assert {first.lifetime, second.lifetime} == {lifetime} and first.mask == second.mask == 6
    assert by_name["one"].lifetime == "static" and by_name["one"].mask == 0xFF
    animation = scene.animation
    assert len(animation.skins) == 2 and len(animation.skinned) == 2
    assert len(animation.parents) == 1 + 2 * (1 + len(alone.animation.parents))
    assert animation.moving_instances(animation.clip()) == ()  # a wave moves joints alone
    assert animation.moving_instances(animation.clip("m/swing")) == (0, 3)
    pose = posed(scene, animation.clip(), 0.4)
    shift = _world_positions(pose, "m#2/flag") - _world_positions(pose, "m/flag")
    np.testing.assert_allclose(shift, [[0, 0, 7]] * 3, atol=1e-6)


def test_what_is_not_animated_shares_its_meshes(moving: Any) -> None:
    text = '[[objects]]\nfile = "m"\nanimate = false\n'
    text += "instances = [{translation = [0, 0, 0]}, {translation = [0, 0, 7]}]\n"
    scene, alone = moving(text)
    assert scene.animation is None and len(scene.meshes) == 4
    assert {i.lifetime for i in scene.instances} == {"static"}
    for name in ("wheel", "post", "flag"):
        here = _world_positions(scene, f"m#2/{name}") - [0, 0, 7]
        np.testing.assert_allclose(here, _world_positions(alone, name), atol=1e-6)


def test_a_clip_that_ends_stays_at_its_end(moving: Any) -> None:
    text = '[[objects]]\nfile = "m"\nclip = "swing"\nloop = false\nspeed = 2\n'
    text += '[[objects]]\nfile = "m"\nname = "other"\nclip = "wave"\n'
    scene, alone = moving(text)
    end = posed(alone, alone.animation.clip("swing"), 1.0)
    clip = scene.animation.clip()
    assert clip.duration == 0.5 and clip.start == 0.0
    for time in (0.5, 0.45 + 0.05):
        got = posed(scene, clip, time)
        np.testing.assert_allclose(
            _world_positions(got, "m/wheel"), _world_positions(end, "wheel"), atol=2e-6
        )
    assert any("jumps" in note for note in scene.notes)


def test_clips_and_nodes_that_a_file_lacks(moving: Any) -> None:
    with pytest.raises(UserError, match=r"objects\[0\] 'm'\.clip is 'swin'.*mean swing\?"):
        moving('[[objects]]\nfile = "m"\nclip = "swin"\n')


def test_clocks() -> None:
    times = np.array([-10.0, 10.0])
    values = np.repeat(times[:, None], 3, axis=1)  # so that a channel is its own clock's time

    def local(clock: Clock, time: float) -> float:
        shown = Channel(0, "translation", "LINEAR", times, values, clock).sample(time)
        return round(float(shown[0]), 12)

    assert local(Clock(), 3.25) == 3.25
    assert local(Clock(start=0.5, speed=2.0), 3.0) == 6.5
    assert local(Clock(start=0.5, speed=2.0, period=2.0), 3.0) == 0.5
    assert local(Clock(speed=-1.0, period=2.0), 0.5) == 1.5
    assert local(Clock(period=2.0), 2.0) == 2.0  # the last key frame shows


def test_the_scenes_clip_ends_where_all_others_begin_again() -> None:
    assert common_period([]) == 0.0
    assert common_period([0.7083333134651184, 1.0, 1.25]) == 85.0
    assert common_period([0.5, 0.75]) == 1.5


@pytest.mark.parametrize("clip", ["Walk", "Run"])
def test_a_real_fox(shared_scenes: Path, tmp_path: Path, clip: str) -> None:
    path = tmp_path / "fox.toml"
    path.write_text(
        f'[files]\nfox = "Fox.glb"\n[[objects]]\nfile = "fox"\nclip = "{clip}"\nstart = 0.25\n'
        "translation = [1, 2, 3]\nscale = 0.01\n"
    )
    scene = load_scene(path, asset_folders([str(shared_scenes)]))
    alone = load_scene(shared_scenes / "Fox.glb")
    expected = posed(alone, alone.animation.clip(clip), 0.35)
    got = posed(scene, scene.animation.clip(), 0.1)
    there = 0.01 * _world_positions(expected, "fox") + [1, 2, 3]
    np.testing.assert_allclose(_world_positions(got, "fox"), there, atol=1e-5)
