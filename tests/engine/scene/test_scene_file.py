"""Scene files: what they place is where arithmetic by hand has it; every mistake is one line."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from engine.gpu.errors import UserError
from engine.scene.asset_folders import AssetFolders, asset_folders
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


def test_a_hundred_thousand_copies_load_in_three_seconds(scene_file: Any) -> None:
    text = "scatter = {count = 100_000, least_distance = 0.5, yaw = [0, 360],"
    text += ' area = {shape = "rectangle", size = [600, 600]}}'
    path = scene_file(ONE + text)
    start = time.process_time()
    scene = load_scene(path)
    assert time.process_time() - start < 3.0
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
    assert any("1 of 2 area lights" in note for note in scene.notes)
    scene = load_scene(scene_file(text + '\n[camera]\nobject = "lit"\n'))
    np.testing.assert_allclose(scene.camera.position, [1, 0, -10])


def test_a_tilted_light_has_a_level_edge_and_faces_its_target(scene_file: Any) -> None:
    text = "[[lights]]\ncenter = [1, 2, 3]\ntarget = [4, 1, 1]\nsize = [2, 6]\nradiance = 1\n"
    light = load_scene(scene_file(ONE + text)).light
    np.testing.assert_allclose(light.normal, np.array([3, -1, -2]) / np.sqrt(14))
    assert light.half_u[1] == 0 and np.linalg.norm(light.half_u) == pytest.approx(1)
    assert np.linalg.norm(light.half_v) == pytest.approx(3)


# files


def test_the_hash_covers_the_scene_file_and_all_its_models(scene_file: Any, tmp_path: Path) -> None:
    text = '[files]\na = "one.glb"\nb = "two.gltf"\n[[objects]]\nfile = "a"\n'
    buffer = np.arange(9, dtype="<f4").tobytes()
    document = (
        '{"asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],'
        '"meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "accessors": ['
        '{"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": 3}], "bufferViews": ['
        '{"buffer": 0, "byteLength": 36}], "buffers": [{"byteLength": 36, "uri": "two.bin"}]}'
    )
    (tmp_path / "two.gltf").write_text(document)
    (tmp_path / "two.bin").write_bytes(buffer)
    path = scene_file(text)
    hashes = [load_scene(path).sha256]
    assert load_scene(path).sha256 == hashes[0] and len(hashes[0]) == 64
    for change in (
        lambda: (tmp_path / "two.bin").write_bytes(buffer[:-1] + b"\x42"),
        lambda: (tmp_path / "two.gltf").write_text(document + " "),
        lambda: path.write_text(text + "# one more"),
        lambda: (tmp_path / "one.glb").write_bytes(
            (tmp_path / "one.glb").read_bytes().replace(b'"tri"', b'"try"')
        ),
    ):
        change()
        hashes.append(load_scene(path).sha256)
    assert len(set(hashes)) == 5


def test_asset_folders_are_searched_and_named(scene_file: Any, tmp_path: Path) -> None:
    models = tmp_path / "models" / "deep"
    models.mkdir(parents=True)
    (models / "far.glb").write_bytes((tmp_path / "one.glb").read_bytes())
    text = '[files]\na = "deep/far.glb"\nb = "kit:far.glb"\n[[objects]]\nfile = "a"\n'
    folders = asset_folders([str(tmp_path / "models"), f"kit={models}"])
    assert load_scene(scene_file(text), folders).triangle_count == 1
    with pytest.raises(UserError, match=r"files\.b is 'kit:\.\.\.'.*--assets kit=FOLDER"):
        load_scene(scene_file(text), asset_folders([str(tmp_path / "models")]))
    with pytest.raises(UserError, match=r"files\.a is 'deep/far.glb', and there is no such file"):
        load_scene(scene_file(text))
    with pytest.raises(UserError, match=r"--assets kit=gone: gone is no folder"):
        asset_folders(["kit=gone"])


@pytest.mark.parametrize("way", ["../one.glb", "absolute", "link.glb", "sub/../../one.glb"])
def test_paths_stay_inside_unless_a_flag_allows_more(
    scene_file: Any, tmp_path: Path, way: str
) -> None:
    inner = tmp_path / "inner"
    (inner / "sub").mkdir(parents=True)
    (inner / "link.glb").symlink_to(tmp_path / "one.glb")
    text = str(tmp_path / "one.glb") if way == "absolute" else way
    path = scene_file(ONE.replace("one.glb", text), "inner/scene.toml")
    with pytest.raises(
        UserError, match=r"files\.one refers to .*outside of.*--allow-outs"
    ) as caught:
        load_scene(path)
    assert caught.value.exit_code == 2
    assert load_scene(path, AssetFolders(allow_outside=True)).triangle_count == 1
    # an asset folder makes the same file an inner one, by whatever way
    assert load_scene(path, AssetFolders(searched=(tmp_path,))).triangle_count == 1


@pytest.mark.parametrize("kind", ["gltf", "obj"])
def test_what_a_model_refers_to_stays_inside_too(
    scene_file: Any, tmp_path: Path, kind: str
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    if kind == "gltf":
        (inner / "out.gltf").write_text(
            '{"asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],'
            '"meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "accessors": [{'
            '"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": 3}], "bufferViews":'
            '[{"buffer": 0, "byteLength": 36}], "buffers": [{"byteLength": 36, "uri": "../x"}]}'
        )
        (tmp_path / "x").write_bytes(np.arange(9, dtype="<f4").tobytes())
    else:
        (inner / "out.obj").write_text(
            "mtllib ../x.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
        )
        (tmp_path / "x.mtl").write_text("newmtl red\nKd 1 0 0\n")
    path = scene_file(f'[files]\no = "out.{kind}"\n[[objects]]\nfile = "o"\n', "inner/scene.toml")
    with pytest.raises(UserError, match=r"out\..*: refers to \.\./x.*outside of.*--allow-outside"):
        load_scene(path)
    assert load_scene(path, AssetFolders(allow_outside=True)).triangle_count == 1


# mistakes

DISC = 'scatter = {count = 2, area = {shape = "disc", radius = 1}'


@pytest.mark.parametrize(
    "text, words",
    [
        ("files = 3", ["files is 3, not a table"]),
        ("[files", ["not a TOML file"]),
        ('[files]\none = "one.glb"', ["objects is missing"]),
        ('[files]\none = 1\n[[objects]]\nfile = "one"', ["files.one is 1, not a text"]),
        ('[files]\none = "gone.glb"\n[[objects]]\nfile = "one"', ["'gone.glb'", "no such file"]),
        ('[files]\no = "scene.toml"\n[[objects]]\nfile = "o"', ["files.o", "not a model file"]),
        ('[files]\none = "one.glb"\n[[objects]]\nfile = "on"', ["objects[0].file", "mean one?"]),
        ('[files]\none = "one.glb"\n[[objects]]\n', ["objects[0].file is missing: a text"]),
        (ONE + ONE.partition("\n[[")[2].join(["[[", ""]), ["objects[1]", "'one' a second time"]),
        (ONE + 'name = "a/b"', ["name", "without / and #"]),
        (ONE + "scael = 2", ["objects[0].scael is no key", "mean scale?"]),
        ("[camra]\n" + ONE, ["camra is no key here", "mean camera?"]),
        (ONE + "scale = 0", ["objects[0] 'one'.scale is 0"]),
        (ONE + "scale = -0.0", ["scale is 0"]),
        (ONE + "scale = [1, 0, 1]", ["scale is 0"]),
        (ONE + "scale = nan", ["scale is nan, not a finite number"]),
        (ONE + "scale = true", ["scale is true, not a finite number"]),
        (ONE + "scale = 1e300", ["scale", "32-bit"]),
        (ONE + "translation = [1, 2]", ["translation is [1, 2], not 3 finite numbers"]),
        (ONE + "translation = [1, 2, inf]", ["translation", "3 finite numbers"]),
        (ONE + "rotation = [0, 0, 0, 0]", ["rotation has length 0"]),
        (ONE + "rotation = [0, 0, 0, 1]\neuler = [0, 0, 0]", ["euler stands beside rotation"]),
        (ONE + "matrix = 3", ["matrix is not 4 rows"]),
        (ONE + "matrix = [[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,1,1]]", ["last row"]),
        (ONE + "matrix = [[1,0,0,0],[0,1,0,0],[1,1,0,0],[0,0,0,1]]", ["matrix is singular"]),
        (ONE + "matrix = [[1,0,0,0],[0,1,0],[0,0,1,0],[0,0,0,1]]", ["matrix.1 is [0, 1, 0]"]),
        (ONE + "scale = 2\nmatrix = []", ["scale stands beside matrix"]),
        (ONE + "mask = 256", ["mask is 256", "from 0 to 255"]),
        (ONE + "mask = 1.0", ["mask is 1.0, not a whole number"]),
        (ONE + 'visible_to = ["shade"]', ["visible_to", "primary, reflection, shadow"]),
        (ONE + "visible_to = []\nmask = 1", ["visible_to stands beside mask"]),
        (ONE + 'lifetime = "statc"', ["lifetime is 'statc'", "mean static?"]),
        (ONE + 'node = "nod"', ["node is 'nod', which its file lacks", "mean node?"]),
        (ONE + 'mesh = "try"', ["mesh is 'try'", "mean tri?"]),
        (ONE + 'node = "node"\nmesh = "tri"', ["mesh stands beside node"]),
        (ONE + 'clip = "Walk"', ["clip is 'Walk', which its file lacks"]),
        (ONE + "animate = false\nspeed = 2", ["speed", "animate is false"]),
        (ONE + "speed = 1e9", ["speed", "from -1000 to 1000"]),
        (ONE + "loop = 1", ["loop is 1, not true or false"]),
        (ONE + "instances = [3]", ["instances[0] is 3, not a table"]),
        (ONE + "instances = [{scale = 0}]", ["instances[0].scale is 0"]),
        (ONE + "instances = []", ["places no triangle"]),
        (ONE + DISC.replace("2", "-1") + "}", ["scatter.count is -1", "from 0 to 1,048,576"]),
        (ONE + DISC + ", seeds = 3}", ["scatter.seeds", "mean seed?"]),
        (ONE + DISC + ", least_distance = 5}", ["scatter has room for 1 of 2"]),
        (ONE + DISC + ", scale = [2, 1]}", ["scatter.scale is [2, 1], not a lower"]),
        (ONE + DISC + ", scale = [0, 1]}", ["scatter.scale", "from 1e-09"]),
        (ONE + DISC + ', exclude = [{shape = "ring", inner = 2, outer = 1}]}', ["outer is 1"]),
        (ONE + DISC + ', exclude = [{shape = "disc", size = [1, 1]}]}', ["exclude[0].size"]),
        (ONE + 'scatter = {count = 1, area = {shape = "disk"}}', ["mean disc?"]),
        (ONE + "scatter = {count = 1}", ["scatter.area is missing"]),
        (ONE + "[camera]\nposition = [0, 0, 0]", ["camera.target is missing"]),
        (ONE + '[camera]\nobject = "on"', ["camera.object is 'on'", "mean one?"]),
        (ONE + '[camera]\nobject = "one"', ["camera.object is 'one', and nothing"]),
        (ONE + '[camera]\nobject = "one"\nfov = 3', ["camera.fov stands beside object"]),
        (ONE + "[camera]\nposition = [0, 5, 0]\ntarget = [0, 0, 0]", ["camera.target is at"]),
        (ONE + "[camera]\nposition = [0,5,1]\ntarget = [0,0,0]\nfov = 180", ["from 1 to 179"]),
        (ONE + "[camera_path]\nkeys = []", ["camera_path.keys is missing"]),
        (ONE + "[camera_path]\nkeys = [{time = 1}]", ["keys[0].position is missing"]),
        (
            ONE
            + "[camera_path]\nkeys = [{time = 1, position = [1, 0, 0], target = [0, 0, 0]},"
            + "{time = 1, position = [1, 0, 0], target = [0, 0, 0]}]",
            ["camera_path.keys[1].time is 1, not after the 1"],
        ),
        (
            ONE + "[[lights]]\ncenter = [0,0,0]\ntarget = [0,0,0]\nsize = [1,1]\nradiance = 1",
            ["lights[0].target is the center"],
        ),
        (
            ONE + "[[lights]]\ncenter = [0,1,0]\ntarget = [0,0,0]\nsize = [1,0]\nradiance = 1",
            ["lights[0].size is 0"],
        ),
        (
            ONE + "[[lights]]\ncenter = [0,1,0]\ntarget = [0,0,0]\nsize = [1,1]\nradiance = -1",
            ["lights[0].radiance is -1", "from 0"],
        ),
        (ONE + "[environment]\nzenith = 1", ["environment.horizon is missing"]),
    ],
)
def test_every_mistake_is_one_line(scene_file: Any, text: str, words: list[str]) -> None:
    path = scene_file(text)
    with pytest.raises(UserError) as caught:
        load_scene(path, None, BITS)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in message and message.startswith(str(path)), message
    for word in words:
        assert word in message, message


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "scene.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not a TOML file"):
        load_scene(path)
