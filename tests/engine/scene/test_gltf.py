"""Every feature of glTF that has to survive the import, each in a hand-made file."""

import base64
import json

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.load import load_scene


def test_one_triangle(glb, write, corners):
    glb.node(mesh=glb.mesh(glb.primitive(corners, [0, 1, 2]), name="tri"), name="here")
    scene = load_scene(write(glb))
    assert scene.triangle_count == 1 and scene.name == "scene"
    (mesh,) = scene.meshes
    assert mesh.name == "tri" and scene.instances[0].name == "here"
    assert mesh.positions.dtype == np.float32 and mesh.triangles.dtype == np.uint32
    np.testing.assert_array_equal(mesh.positions, corners)
    np.testing.assert_array_equal(mesh.triangles, [[0, 1, 2]])
    assert not mesh.normals.any(), "no stored normal is a zero row, never an invented one"
    np.testing.assert_array_equal(mesh.colors, 255)
    assert len(scene.sha256) == 64 and scene.notes == ()


def test_attributes_are_kept_as_stored(glb, write, corners):
    normals = [[0, 0, 2], [0, 0, 0], [0, 1, 0]]
    uvs = [[0.25, 0.125], [1.5, -2], [0, 1]]
    colors = [[0, 64, 255, 128], [255, 255, 255, 255], [1, 2, 3, 4]]
    glb.node(
        mesh=glb.mesh(
            glb.primitive(
                corners,
                NORMAL=glb.accessor(normals),
                TEXCOORD_0=glb.accessor(uvs),
                COLOR_0=glb.accessor(colors, "u1", normalized=True),
            )
        )
    )
    (mesh,) = load_scene(write(glb)).meshes
    np.testing.assert_array_equal(mesh.normals, [[0, 0, 1], [0, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(mesh.uvs, np.float32(uvs))
    np.testing.assert_array_equal(mesh.colors, colors)


def test_float_rgb_colors_get_full_alpha(glb, write, corners):
    color = glb.accessor([[0.5, 0, 2], [1, 1, 1], [0, 0, 0]])
    glb.node(mesh=glb.mesh(glb.primitive(corners, COLOR_0=color)))
    (mesh,) = load_scene(write(glb)).meshes
    np.testing.assert_array_equal(mesh.colors[0], [128, 0, 255, 255])


def test_one_mesh_a_primitive_and_nodes_share_it(glb, write, corners):
    red = glb.add("materials", {"name": "red"})
    blue = glb.add("materials", {"name": "blue"})
    first = {**glb.primitive(corners), "material": blue}
    second = {**glb.primitive(corners + 1), "material": red}
    mesh = glb.mesh(first, second, name="pair")
    glb.node(mesh=mesh, name="a")
    glb.node(mesh=mesh, name="a", translation=[5, 0, 0])
    scene = load_scene(write(glb))
    assert [m.name for m in scene.meshes] == ["pair/0", "pair/1"]
    assert [scene.materials[m.material].name for m in scene.meshes] == ["blue", "red"]
    assert [i.mesh for i in scene.instances] == [0, 1, 0, 1]
    names = [i.name for i in scene.instances]
    assert names == ["a/0", "a/1", "a/0#2", "a/1#2"], "reports are keyed by name"
    assert scene.triangle_count == 4
    np.testing.assert_array_equal(scene.bounds(), [[0, 0, 0], [7, 2, 1]])


def test_node_transforms_multiply_down_the_tree(glb, write, corners):
    mesh = glb.mesh(glb.primitive(corners))
    half = np.sqrt(0.5)
    leaf = glb.node(root=False, mesh=mesh, translation=[1, 0, 0])
    # matrix is column-major: this one swaps nothing and moves by (0, 0, 7)
    moved = glb.node(
        root=False, children=[leaf], matrix=[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 7, 1]
    )
    glb.node(children=[moved], rotation=[0, 0, half, half], scale=[2, 3, 4], translation=[0, 0, 10])
    (instance,) = load_scene(write(glb)).instances
    # (1, 0, 0) + (0, 0, 7), scaled to (2, 0, 28), turned by 90 degrees about z, moved
    np.testing.assert_allclose(instance.transform @ [0, 0, 0, 1], [0, 2, 38, 1], atol=1e-12)
    np.testing.assert_allclose(instance.transform @ [0, 1, 0, 0], [-3, 0, 0, 0], atol=1e-12)


def test_nodes_scaled_to_nothing_are_left_out_and_told(glb, write, corners):
    mesh = glb.mesh(glb.primitive(corners), name="tri")
    glb.node(mesh=mesh, name="shown", scale=[1e-3, 1, 1])
    for scale in ([0, 0, 0], [1, 0, 1]):
        glb.node(mesh=mesh, name="hidden", scale=scale)
    scene = load_scene(write(glb))
    assert [instance.name for instance in scene.instances] == ["shown"]
    assert scene.notes == ("a mesh that its node's transform flattens is not drawn (2 times)",)


def test_strips_and_fans_keep_their_winding(glb, write):
    square = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    glb.node(mesh=glb.mesh({**glb.primitive(square, [0, 1, 2, 3]), "mode": 5}))
    glb.node(mesh=glb.mesh({**glb.primitive(square, [0, 1, 3, 2]), "mode": 6}))
    glb.node(mesh=glb.mesh({**glb.primitive(square), "mode": 0}))
    scene = load_scene(write(glb))
    assert scene.triangle_count == 4 and any("points" in note for note in scene.notes)
    for mesh in scene.meshes:
        a, b, c = (mesh.positions[mesh.triangles[:, k]] for k in range(3))
        np.testing.assert_array_equal(np.cross(b - a, c - a), [[0, 0, 1]] * 2)


def test_strides_offsets_sparse_and_quantised_positions(glb, write, corners):
    rows = np.zeros((3, 5), "<f4")
    rows[:, 1:4] = corners * 3
    view = glb.view(rows.tobytes(), byteStride=20)
    at = glb.add(
        "accessors",
        {
            "bufferView": view,
            "byteOffset": 4,
            "componentType": 5126,
            "type": "VEC3",
            "count": 3,
            "sparse": {
                "count": 1,
                "indices": {"bufferView": glb.view(b"\x01"), "componentType": 5121},
                "values": {"bufferView": glb.view(np.float32([9, 8, 7]).tobytes())},
            },
        },
    )
    glb.node(mesh=glb.mesh({"attributes": {"POSITION": at}}))
    short = glb.accessor(corners * 32767, "i2", normalized=True)
    glb.node(mesh=glb.mesh({"attributes": {"POSITION": short}}))
    strided, quantised = load_scene(write(glb)).meshes
    np.testing.assert_array_equal(strided.positions, [[0, 0, 0], [9, 8, 7], [0, 3, 0]])
    np.testing.assert_array_equal(quantised.positions, corners)


def test_material_factors_are_exact(glb, write, corners):
    factors = {
        "baseColorFactor": [0.001, 0.389509, 0.5, 0.25],
        "metallicFactor": 0.125,
        "roughnessFactor": 0,
    }
    shiny = {
        "name": "shiny",
        "pbrMetallicRoughness": factors,
        "emissiveFactor": [1, 0.5, 0],
        "doubleSided": True,
        "extensions": {"KHR_materials_emissive_strength": {"emissiveStrength": 4}},
    }
    for material in (shiny, {"pbrMetallicRoughness": {}}):
        index = glb.add("materials", material)
        glb.node(mesh=glb.mesh({**glb.primitive(corners), "material": index}))
    glb.node(mesh=glb.mesh(glb.primitive(corners)))
    first, empty, absent = load_scene(write(glb)).materials
    assert first.base_color == (0.001, 0.389509, 0.5, 0.25)
    assert (first.metallic, first.roughness, first.double_sided) == (0.125, 0.0, True)
    assert first.emissive == (4.0, 2.0, 0.0)
    for plain in (empty, absent):
        assert plain.base_color == (1, 1, 1, 1) and plain.opaque and not plain.double_sided
        assert (plain.metallic, plain.roughness) == (1.0, 1.0)
        assert (plain.base_color_texture, plain.metallic_roughness_texture) == (-1, -1)


def test_alpha_modes_and_cutoffs(glb, write, corners):
    for material in (
        {},
        {"alphaMode": "MASK"},
        {"alphaMode": "MASK", "alphaCutoff": 0.75},
        {"alphaMode": "MASK", "alphaCutoff": 0},
        {"alphaMode": "BLEND", "alphaCutoff": 0.9},
    ):
        index = glb.add("materials", material)
        glb.node(mesh=glb.mesh({**glb.primitive(corners), "material": index}))
    materials = load_scene(write(glb)).materials
    assert [m.alpha_mode for m in materials] == ["OPAQUE", "MASK", "MASK", "MASK", "BLEND"]
    assert [m.alpha_cutoff for m in materials[1:]] == [0.5, 0.75, 0.0, 0.5]
    assert [m.opaque for m in materials] == [True, False, False, False, False]


def test_textures_srgb_wrap_modes_and_sharing(glb, write, corners):
    pixels = np.arange(2 * 3 * 4).reshape(2, 3, 4) * 10
    image = glb.image(pixels)
    glb.add("samplers", {"wrapS": 33071, "wrapT": 33648})
    clamped = glb.add("textures", {"source": image, "sampler": 0})
    plain = glb.add("textures", {"source": image})
    pbr = {"baseColorTexture": {"index": clamped}, "metallicRoughnessTexture": {"index": plain}}
    for _ in range(2):
        index = glb.add("materials", {"pbrMetallicRoughness": pbr})
        glb.node(mesh=glb.mesh({**glb.primitive(corners), "material": index}))
    scene = load_scene(write(glb))
    base, shiny = scene.textures
    assert (base.srgb, base.wrap_u, base.wrap_v) == (True, "clamp", "mirror")
    assert (shiny.srgb, shiny.wrap_u, shiny.wrap_v) == (False, "repeat", "repeat")
    np.testing.assert_array_equal(base.pixels, pixels)
    for material in scene.materials:
        assert (material.base_color_texture, material.metallic_roughness_texture) == (0, 1)


def test_texture_transform_and_second_uv_set(glb, write, corners):
    image = glb.add("textures", {"source": glb.image(np.zeros((1, 1, 4)))})
    move = {"offset": [0.5, 0.25], "rotation": np.pi / 2, "scale": [2, 3], "texCoord": 1}
    info = {"index": image, "extensions": {"KHR_texture_transform": move}}
    index = glb.add("materials", {"pbrMetallicRoughness": {"baseColorTexture": info}})
    wrong, right = glb.accessor(np.full((3, 2), 9.0)), glb.accessor([[0, 0], [1, 0], [0, 1]])
    primitive = glb.primitive(corners, TEXCOORD_0=wrong, TEXCOORD_1=right)
    glb.node(mesh=glb.mesh({**primitive, "material": index}))
    glb.json["extensionsRequired"] = ["KHR_texture_transform"]
    (mesh,) = load_scene(write(glb)).meshes
    # the extension's matrix: u' = cos u + sin v, v' = -sin u + cos v, after scaling
    np.testing.assert_allclose(mesh.uvs, [[0.5, 0.25], [0.5, -1.75], [3.5, 0.25]], atol=1e-6)


def test_unused_material_features_are_noted(glb, write, corners):
    image = glb.add("textures", {"source": glb.image(np.zeros((1, 1, 4)))})
    index = glb.add("materials", {"normalTexture": {"index": image}})
    glb.node(mesh=glb.mesh({**glb.primitive(corners), "material": index}))
    scene = load_scene(write(glb))
    assert any("normalTexture (1)" in note for note in scene.notes)
    assert scene.textures == (), "a texture that nothing samples is not decoded"


def test_first_camera_is_kept_and_none_is_invented(glb, write, corners):
    glb.node(mesh=glb.mesh(glb.primitive(corners)))
    assert load_scene(write(glb)).camera_source == "default"
    glb.add("cameras", {"type": "orthographic", "orthographic": {"xmag": 1, "ymag": 1}})
    for y_fov in (0.6, 0.9):
        glb.add("cameras", {"type": "perspective", "perspective": {"yfov": y_fov, "znear": 0.1}})
    glb.node(camera=0)
    glb.node(camera=1, translation=[1, 2, 3], scale=[2, 2, 2])
    glb.node(camera=2)
    scene = load_scene(write(glb))
    assert (scene.camera_source, scene.camera.y_fov) == ("file", 0.6)
    expected = np.eye(4)
    expected[:3, 3] = [1, 2, 3]
    np.testing.assert_allclose(scene.camera.transform, expected)
    assert any("orthographic" in note for note in scene.notes)


def test_treeline_extras(glb, write, corners):
    mesh = glb.mesh(glb.primitive(corners))
    child = glb.node(root=False, mesh=mesh)
    glb.node(children=[child], extras={"treeline": {"lifetime": "deforming", "mask": 3}})
    glb.node(mesh=mesh, extras={"other": 1})
    light = {"area_light": {"size": [2, 4], "radiance": [1, 2, 3]}}
    half = np.sqrt(0.5)  # -90 degrees about x: -Z looks down
    glb.node(rotation=[-half, 0, 0, half], translation=[0, 5, 0], extras={"treeline": light})
    other = {"area_light": {"size": [1, 1], "radiance": [4, 5, 6]}}
    glb.node(extras={"treeline": other})
    sky = {"zenith": [1, 2, 3], "horizon": [4, 5, 6], "ground": [7, 8, 9]}
    glb.json["scenes"][0]["extras"] = {"treeline": {"environment": sky}}
    scene = load_scene(write(glb))
    assert [(i.mask, i.lifetime) for i in scene.instances] == [(3, "deforming"), (0xFF, "static")]
    assert scene.light_source == "file" and scene.light.radiance == (1, 2, 3)
    assert [light.radiance for light in scene.more_lights] == [(4, 5, 6)]
    np.testing.assert_allclose(scene.light.center, [0, 5, 0])
    np.testing.assert_allclose(scene.light.normal, [0, -1, 0], atol=1e-12)
    assert scene.light.area == pytest.approx(8.0)
    np.testing.assert_allclose(np.abs(scene.light.half_u), [1, 0, 0], atol=1e-12)
    assert scene.environment.zenith == (1, 2, 3) and scene.environment.ground == (7, 8, 9)


def test_mirrored_light_still_shines_along_its_minus_z(glb, write, corners):
    glb.node(mesh=glb.mesh(glb.primitive(corners)))
    light = {"area_light": {"size": [2, 2], "radiance": [1, 1, 1]}}
    glb.node(scale=[-1, 1, 1], extras={"treeline": light})
    for scale in ([-1, 1, 1], [1, 1, 1], [1, -2, 1]):
        glb.json["nodes"][1]["scale"] = scale
        np.testing.assert_allclose(load_scene(write(glb)).light.normal, [0, 0, -1])


def test_text_gltf_with_files_beside_it(glb, write, corners, tmp_path):
    glb.node(mesh=glb.mesh(glb.primitive(corners)))
    document = {**glb.json, "buffers": [{"byteLength": len(glb.blob), "uri": "a%20b.bin"}]}
    write(bytes(glb.blob), "a b.bin")
    path = write(json.dumps(document), "scene.gltf")
    scene = load_scene(path)
    np.testing.assert_array_equal(scene.meshes[0].positions, corners)
    uri = "data:application/octet-stream;base64," + base64.b64encode(glb.blob).decode()
    document["buffers"][0]["uri"] = uri
    embedded = load_scene(write(json.dumps(document), "embedded.gltf"))
    np.testing.assert_array_equal(embedded.meshes[0].positions, corners)
    glb.blob[0] ^= 1  # one bit of the buffer: the checksum covers what the file refers to
    write(bytes(glb.blob), "a b.bin")
    assert load_scene(path).sha256 != scene.sha256
    (tmp_path / "a b.bin").unlink()
    with pytest.raises(UserError, match=r"refers to a%20b\.bin, which cannot be read"):
        load_scene(path)


def test_only_the_shown_scene_is_loaded(glb, write, corners):
    mesh = glb.mesh(glb.primitive(corners))
    glb.node(mesh=mesh)
    other = glb.node(root=False, mesh=mesh, name="other")
    glb.add("scenes", {"nodes": [other]})
    glb.json["scene"] = 1
    assert [i.name for i in load_scene(write(glb)).instances] == ["other"]
