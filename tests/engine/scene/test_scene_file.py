"""Scene files: what they place is where arithmetic by hand has it."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from engine.scene.load import load_scene
from engine.scene.scene import Scene

ONE = '[files]\none = "one.glb"\n[[objects]]\nfile = "one"\n'
BITS = {"primary": 1, "reflection": 2, "shadow": 4}


def _linear(scene: Scene, index: int = 0) -> np.ndarray:
    return scene.instances[index].transform[:3, :3]


def test_a_point_is_scaled_then_rotated_then_moved(scene_file: Any) -> None:
    text = "translation = [10, 20, 30]\naxis_angle = [0, 0, 2, 90]\nscale = [2, 3, 4]\n"
    (instance,) = load_scene(scene_file(ONE + text)).instances
    # (1, 1, 1) -> (2, 3, 4) -> (-3, 2, 4) -> (7, 22, 34)
    np.testing.assert_allclose(instance.transform @ [1, 1, 1, 1], [7, 22, 34, 1], atol=1e-12)


def test_rotations_are_those_of_scipy(scene_file: Any, rng: Any) -> None:
    x, y, z = rng.uniform(-180, 180, 3).tolist()
    got = _linear(load_scene(scene_file(ONE + f"euler = [{x}, {y}, {z}]")))
    np.testing.assert_allclose(
        got, Rotation.from_euler("xyz", [x, y, z], degrees=True).as_matrix(), atol=1e-12
    )
    q = rng.normal(size=4)
    text = f"rotation = {(3 * q).tolist()}\nscale = -2"
    got = _linear(load_scene(scene_file(ONE + text)))
    np.testing.assert_allclose(got, -2 * Rotation.from_quat(q).as_matrix(), atol=1e-12)
    axis = q[:3] / np.linalg.norm(q[:3])
    got = _linear(load_scene(scene_file(ONE + f"axis_angle = {[*(9 * axis).tolist(), 37]}")))
    turn = Rotation.from_rotvec(np.radians(37) * axis)
    np.testing.assert_allclose(got, turn.as_matrix(), atol=1e-12)


def test_a_matrix_is_written_in_rows(scene_file: Any) -> None:
    rows = [[0, -2, 0, 1], [1, 0, 0, 2], [0, 0, 3, 4], [0, 0, 0, 1]]
    (instance,) = load_scene(scene_file(ONE + f"matrix = {rows}")).instances
    np.testing.assert_array_equal(instance.transform, rows)


def test_listed_copies_act_around_the_objects_own_transform(scene_file: Any) -> None:
    text = "scale = 2\ninstances = [{translation = [1, 0, 0]}, {euler = [0, 90, 0]}]"
    scene = load_scene(scene_file(ONE + text))
    assert [i.name for i in scene.instances] == ["one", "one#2"]
    assert [i.mesh for i in scene.instances] == [0, 0]
    np.testing.assert_allclose(scene.instances[0].transform @ [1, 1, 1, 1], [3, 2, 2, 1])
    # doubled, then X to -Z and Z to X
    np.testing.assert_allclose(
        scene.instances[1].transform @ [1, 2, 3, 1], [6, 4, -2, 1], atol=1e-12
    )


def test_objects_of_one_file_share_meshes_and_have_names_of_their_own(
    scene_file: Any, tmp_path: Path, glb: Any, corners: Any
) -> None:
    glb.node(mesh=1, name="second", translation=[0, 5, 0])
    glb.mesh(glb.primitive(corners), glb.primitive(corners), name="pair")
    (tmp_path / "two.glb").write_bytes(glb.data())
    text = """
        [files]
        two = "two.glb"
        one = "one.glb"
        [[objects]]
        file = "two"
        name = "left"
        [[objects]]
        file = "two"
        name = "right"
        node = "second"
        translation = [1, 0, 0]
        [[objects]]
        file = "two"
        name = "tri"
        mesh = "tri"
        [[objects]]
        file = "one"
    """
    scene = load_scene(scene_file(text))
    names = ["left/node", "left/second/0", "left/second/1", "right/second/0", "right/second/1"]
    assert [i.name for i in scene.instances] == [*names, "tri", "one"]
    assert [i.mesh for i in scene.instances] == [0, 1, 2, 1, 2, 0, 3]
    assert [m.name for m in scene.meshes] == ["two/tri", "two/pair/0", "two/pair/1", "one"]
    np.testing.assert_array_equal(scene.instances[4].transform[:3, 3], [1, 5, 0])


def test_materials_and_textures_are_renumbered(
    scene_file: Any, tmp_path: Path, glb: Any, corners: Any
) -> None:
    grey = np.full((1, 1, 3), 128)
    glb.add("textures", {"source": glb.image(grey)})
    glb.add("materials", {"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}})
    glb.node(mesh=glb.mesh({**glb.primitive(corners), "material": 0}), name="textured")
    (tmp_path / "textured.glb").write_bytes(glb.data())
    text = '[files]\na = "textured.glb"\nb = "textured.glb"\n'
    text += '[[objects]]\nfile = "b"\nnode = "textured"\n[[objects]]\nfile = "b"\nname = "c"\n'
    scene = load_scene(scene_file(text))
    textured = scene.materials[scene.meshes[scene.instances[0].mesh].material]
    assert textured.base_color_texture == 1 and len(scene.textures) == 2
    plain = scene.materials[scene.meshes[scene.instances[1].mesh].material]
    assert plain.base_color_texture == -1


@pytest.mark.parametrize(
    "text, mask",
    [
        ("", 0xFF),
        ("mask = 3", 3),
        ('visible_to = ["shadow"]', 4),
        ('visible_to = ["primary", "shadow"]', 5),
        ('hidden_from = ["shadow"]', 0xFB),
        ("visible_to = []", 0),
    ],
)
def test_masks(scene_file: Any, text: str, mask: int) -> None:
    assert load_scene(scene_file(ONE + text), None, BITS).instances[0].mask == mask


@pytest.mark.parametrize("count", [0, 1, 3])
def test_scattered_copies_share_one_mesh(scene_file: Any, count: int) -> None:
    text = '[[objects]]\nfile = "one"\nname = "many"\nlifetime = "vegetation"\n'
    text += f'scatter = {{count = {count}, area = {{shape = "disc", radius = 5}}}}\n'
    scene = load_scene(scene_file(ONE + text))
    many = [i for i in scene.instances if i.name.startswith("many")]
    assert len(many) == count and len(scene.meshes) == 1
    assert {i.lifetime for i in many} <= {"vegetation"}


def test_a_scattered_copy_acts_around_the_objects_own_transform(scene_file: Any) -> None:
    text = "translation = [0, 3, 1]\nscale = 2\nscatter = {count = 1, scale = [5, 5],"
    text += 'yaw = [90, 90], area = {shape = "disc", center = [10, 20, 30], radius = 0}}'
    (instance,) = load_scene(scene_file(ONE + text)).instances
    # (1, 0, 0) -> (2, 3, 1) -> five times (1, 3, -2) -> from the place on the ground
    np.testing.assert_allclose(instance.transform @ [1, 0, 0, 1], [15, 35, 20, 1], atol=1e-9)


def test_a_hundred_thousand_copies_load_in_seconds(scene_file: Any) -> None:
    text = "scatter = {count = 100_000, least_distance = 0.5, yaw = [0, 360],"
    text += ' area = {shape = "rectangle", size = [600, 600]}}'
    path = scene_file(ONE + text)
    start = time.process_time()
    scene = load_scene(path)
    assert time.process_time() - start < 15.0, "about 2 s on an idle core"
    assert len({i.name for i in scene.instances}) == 100_000 and len(scene.meshes) == 1
    corners = scene.meshes[0].positions
    placed = [i.transform[:3, :3] @ corners.T + i.transform[:3, 3:] for i in scene.instances]
    every = np.concatenate(placed, axis=1)
    np.testing.assert_allclose(scene.bounds(), [every.min(axis=1), every.max(axis=1)], atol=1e-9)


def test_what_a_model_brings_is_placed_with_it(scene_file: Any, tmp_path: Path, glb: Any) -> None:
    glb.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.5, "znear": 0.1}})
    glb.node(camera=0, name="camera", translation=[0, 0, 5])
    lamp = {"area_light": {"size": [2, 1], "radiance": [1, 2, 3]}}
    glb.node(name="lamp", translation=[0, 4, 0], extras={"treeline": lamp})
    colors = {"zenith": [1, 0, 0], "horizon": [0, 1, 0], "ground": [0, 0, 1]}
    glb.json["scenes"][0]["extras"] = {"treeline": {"environment": colors}}
    (tmp_path / "lit.glb").write_bytes(glb.data())
    text = '[files]\none = "one.glb"\nlit = "lit.glb"\n[[objects]]\nfile = "one"\n'
    text += '[[objects]]\nfile = "lit"\ntranslation = [1, 0, 0]\nscale = [2, 2, -2]\n'
    scene = load_scene(scene_file(text))
    assert (scene.camera_source, scene.light_source) == ("file", "file")
    np.testing.assert_allclose(scene.camera.position, [1, 0, -10])
    np.testing.assert_allclose(scene.camera.forward, [0, 0, 1])
    axes = scene.camera.transform[:3, :3]
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) > 0
    # it shone along -Z, and the mirror turns that
    np.testing.assert_allclose(scene.light.normal, [0, 0, 1])
    np.testing.assert_allclose(scene.light.center, [1, 8, 0])
    assert scene.light.area == pytest.approx(8.0)
    assert scene.environment.ground == (0, 0, 1)
    own = "\n[camera]\nposition = [0, 0, 3]\ntarget = [0, 0, 0]\nfov = 90\n"
    own += "[environment]\nzenith = 1\nhorizon = [0, 2, 0]\nground = 0\n"
    own += "[[lights]]\ncenter = [0, 3, 0]\ntarget = [0, 0, 0]\nsize = [2, 4]\nradiance = 5\n" * 2
    scene = load_scene(scene_file(text + own))
    np.testing.assert_allclose(scene.camera.position, [0, 0, 3])
    assert scene.camera.y_fov == pytest.approx(np.pi / 2)
    np.testing.assert_allclose(scene.light.normal, [0, -1, 0], atol=1e-12)
    assert scene.light.radiance == (5, 5, 5) and scene.light.area == pytest.approx(8.0)
    assert scene.environment.horizon == (0, 2, 0) and scene.environment.zenith == (1, 1, 1)
    assert len(scene.lights) == 2 and scene.lights[1].radiance == (5, 5, 5)
    scene = load_scene(scene_file(text + '\n[camera]\nobject = "lit"\n'))
    np.testing.assert_allclose(scene.camera.position, [1, 0, -10])


def test_a_tilted_light_has_a_level_edge_and_faces_its_target(scene_file: Any) -> None:
    text = "[[lights]]\ncenter = [1, 2, 3]\ntarget = [4, 1, 1]\nsize = [2, 6]\nradiance = 1\n"
    light = load_scene(scene_file(ONE + text)).light
    np.testing.assert_allclose(light.normal, np.array([3, -1, -2]) / np.sqrt(14))
    assert light.half_u[1] == 0 and np.linalg.norm(light.half_u) == pytest.approx(1)
    assert np.linalg.norm(light.half_v) == pytest.approx(3)
