"""What a scene file places, prepared: one BLAS for all copies, masks in the TLAS, real names."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.decode import decode
from bvh.layout import INSTANCE_CUSTOM_WORD, INSTANCE_MASK_SHIFT
from engine.scene.load import load_scene
from engine.scene.pose import posed
from passes.prepare import prepare
from treeline import scenes

ONE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"


@pytest.fixture
def scene_file(tmp_path: Path) -> Any:
    """Writes a .toml beside one.obj of one triangle."""

    def writer(text: str) -> Path:
        (tmp_path / "one.obj").write_text(ONE)
        path = tmp_path / "scene.toml"
        path.write_text('[files]\none = "one.obj"\n' + text)
        return path

    return writer


@pytest.mark.parametrize("group", ["static", "object"])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_copies_share_one_blas(scene_file: Any, group: str, count: int) -> None:
    area = '{shape = "disc", radius = 50}'
    text = '[[objects]]\nfile = "one"\nname = "base"\n[[objects]]\nfile = "one"\nname = "many"\n'
    text += f'lifetime = "vegetation"\nscatter = {{count = {count}, area = {area}}}\n'
    prepared = prepare(load_scene(scene_file(text)), group=group)
    assert len(prepared.bvh.instances) == 1 + count
    blases = {i.blas for i in prepared.bvh.instances if i.name.startswith("many")}
    assert len(blases) == min(count, 1) and len(prepared.bvh.blas_names) <= 2
    assert set(prepared.object_names) <= {"one", "static"}


def test_masks_reach_the_tlas(scene_file: Any) -> None:
    text = ""
    for name, mask in (("a", 'visible_to = ["shadow"]'), ("b", 'hidden_from = ["shadow"]')):
        text += f'[[objects]]\nfile = "one"\nname = "{name}"\n{mask}\n'
    prepared = prepare(scenes.load(scene_file(text)))
    shadow = scenes.RAY_BITS["shadow"]
    assert [i.mask for i in prepared.bvh.instances] == [shadow, 0xFF & ~shadow]
    assert prepared.pack.objects["mask"].tolist() == [shadow, 0xFF & ~shadow]
    leaves = decode(prepared.bvh.tlas_words).leaves
    stored = leaves[:, INSTANCE_CUSTOM_WORD] >> np.uint32(INSTANCE_MASK_SHIFT)
    assert sorted(stored.tolist()) == [shadow, 0xFF & ~shadow]


def test_scene_files_of_the_repository_load(shared_scenes: Path) -> None:
    folder = scenes.EMBEDDED.parent.parent / "benchmarks" / "scenes"
    scene = scenes.load(folder / "kitchen_frame.toml", [str(shared_scenes)])
    assert scene.camera_source == scene.light_source == "file"
    pines = [i for i in scene.instances if i.name.startswith("pine")]
    assert len(pines) == 2000 and len({i.mesh for i in pines}) == 2
    foliage = [scene.materials[scene.meshes[i.mesh].material] for i in pines]
    assert sum(m.alpha_mode == "MASK" for m in foliage) == 1000
    assert scene.animation is not None
    assert [clip.name for clip in scene.animation.clips][:2] == ["scene", "fox/Survey"]
    # what stands in the kitchen stands on its floor, inside of its walls
    for name, height in (("fox", (0.4, 0.8)), ("lumberjack", (1.5, 2.0))):
        (figure,) = [i for i in scene.instances if i.name == name]
        points = scene.meshes[figure.mesh].positions
        low, high = points.min(axis=0), points.max(axis=0)
        assert abs(low[1] + 0.02) < 0.06 and height[0] < high[1] - low[1] < height[1]
        assert (low[[0, 2]] > [-2.5, -2.5]).all() and (high[[0, 2]] < [3.6, 5.4]).all()


def test_embedded_models_alone() -> None:
    folder = scenes.EMBEDDED.parent.parent / "benchmarks" / "scenes"
    scene = scenes.load(folder / "hall_frame.toml")
    assert scene.camera_source == "file" and scene.camera_path is not None
    scene = scenes.load(folder / "hall_lights.toml")
    assert scene.light_source == "file" and len(scene.lights) == 6


ROOM = """
[files]
floor = "floor.obj"
[camera]
position = [0, 3, 4]
target = [0, 0, 0]
fov = 60
[environment]
zenith = 0
horizon = 0
ground = 0
[[lights]]
center = [0, 6, 0]
target = [0, 0, 0]
size = [0.2, 0.2]
radiance = 900
[[objects]]
file = "floor"
scale = 4
[[objects]]
file = "floor"
name = "blocker"
translation = [0, 1.5, 0]
scale = 0.5
"""


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize(
    "mask, seen, shadow",
    [
        ("", True, True),
        ('visible_to = ["shadow"]', False, True),
        ('hidden_from = ["shadow"]', True, False),
        ('visible_to = ["reflection"]', False, False),
    ],
)
def test_an_object_is_what_some_ray_types_see(
    tmp_path: Path, draw: Any, gbuffer: str, mask: str, seen: bool, shadow: bool
) -> None:
    """A shadow-only proxy casts a shadow and is not in the picture, and the other way about."""
    corners = "v -1 0 -1\nv 1 0 -1\nv 1 0 1\nv -1 0 1\n"
    (tmp_path / "floor.obj").write_text(corners + "f 1 4 3 2\n")
    path = tmp_path / "room.toml"
    path.write_text(ROOM + mask)
    drawn = draw(scenes.load(path), 24, 24, gbuffer=gbuffer)
    objects = drawn.frame.aov("object")
    names = [i.name for i in drawn.prepared.scene.instances]
    assert bool((objects == names.index("blocker")).any()) == seen
    rays, lit = drawn.shadows
    # those from the middle of the floor, right below the blocker
    middle = (np.abs(rays["origin"][:, [0, 2]]) < 0.25).all(axis=1) & (rays["origin"][:, 1] < 1)
    assert middle.any() and (lit[middle] != shadow).all()


MOVING = """
[files]
fox = "Fox.glb"
truck = "CesiumMilkTruck.glb"
[camera]
position = [0, 1.5, 6]
target = [0, 0.8, 0]
[[objects]]
file = "fox"
clip = "Walk"
start = 0.2
speed = 1.3
scale = 0.02
translation = [1.6, 0, 1]
euler = [0, 60, 0]
[[objects]]
file = "truck"
translation = [0, 0, -1]
scale = [0.8, 0.9, 0.7]
"""


def test_a_frame_poses_several_files_at_once(
    shared_scenes: Path, tmp_path: Path, draw: Any
) -> None:
    """Posed, skinned and refitted on the GPU, against the same scene posed on the CPU."""
    path = tmp_path / "moving.toml"
    path.write_text(MOVING)
    scene = scenes.load(path, [str(shared_scenes)])
    assert scene.animation is not None
    frame = draw(scene, 48, 27).frame
    at_zero = frame.aov("depth").copy()
    frame.run(0, inputs=replace(frame.inputs, clip="scene", time=0.37))
    still = posed(scene, scene.animation.clip(), 0.37)
    expected = draw(replace(still, animation=None), 48, 27).frame
    found, wanted = frame.aov("depth"), expected.aov("depth")
    hit = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found), hit)
    np.testing.assert_allclose(found[hit], wanted[hit], rtol=1e-5)
    assert (np.isfinite(at_zero) != hit).sum() > 3
