"""Every unusable file gives one clear line and exit code 2, never a traceback."""

import json
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.load import load_scene


def refused(path: Path, *words: str) -> None:
    with warnings.catch_warnings(), pytest.raises(UserError) as caught:
        warnings.simplefilter("error")
        load_scene(path)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in message and str(path) in message, message
    for word in words:
        assert word in message, message


@pytest.fixture
def triangle(glb, corners):
    """A document whose one triangle is fine until a test breaks it."""
    glb.node(mesh=glb.mesh(glb.primitive(corners, [0, 1, 2]), name="tri"), name="node")
    return glb


def test_missing_file(tmp_path):
    for name in ("gone.glb", "gone.obj", "a/b/gone.stl"):
        refused(tmp_path / name, "no such file")


def test_directory(tmp_path):
    folder = tmp_path / "folder.glb"
    folder.mkdir()
    refused(folder, "is a directory")
    refused(tmp_path, "is a directory")


def test_unreadable_file(write, triangle, monkeypatch):
    path = write(triangle)

    def deny(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", deny)
    refused(path, "Permission denied")


@pytest.mark.parametrize("name", ["scene.fbx", "scene", "scene.png"])
def test_unknown_extension(write, name):
    refused(write(b"data", name), "not a scene file", ".glb .gltf .obj .ply .stl")


@pytest.mark.parametrize("kind", ["glb", "gltf", "obj", "ply", "stl"])
def test_empty_file(write, kind):
    refused(write(b"", f"empty.{kind}"), "empty")


@pytest.mark.parametrize("kind", ["glb", "gltf", "obj", "ply", "stl"])
@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 20, b"hello\nworld\n" * 30])
def test_not_a_mesh(write, kind, content):
    refused(write(content, f"other.{kind}"))


def test_truncated_glb(write, triangle):
    data = triangle.data()
    for length in (3, 4, 12, 19, 40, len(data) // 2, len(data) - 1):
        refused(write(data[:length]), "GLB")


def test_truncated_ply_and_stl(write):
    head = b"ply\nformat binary_little_endian 1.0\nelement vertex 3\nproperty float x\n"
    head += b"property float y\nproperty float z\nelement face 1\n"
    head += b"property list uchar int vertex_indices\nend_header\n"
    ply = head + struct.pack("<9fBiii", *range(9), 3, 0, 1, 2)
    stl = bytes(80) + struct.pack("<I12fH", 1, 0, 0, 1, *range(9), 0)
    for data, name in ((ply, "cut.ply"), (stl, "cut.stl")):
        assert load_scene(write(data, name)).triangle_count == 1
        for length in (1, 20, len(data) // 2, len(data) - 1):
            refused(write(data[:length], name))


def test_buffer_shorter_than_declared(write, triangle):
    data = triangle.data()
    # the document still declares its bytes, the binary chunk lost 16 of them
    json_length = struct.unpack_from("<I", data, 12)[0]
    chunk = 20 + json_length
    size = struct.unpack_from("<I", data, chunk)[0]
    short = data[: chunk + 8 + size - 16]
    short = short[:8] + struct.pack("<I", len(short)) + short[12:]
    short = short[:chunk] + struct.pack("<I", size - 16) + short[chunk + 4 :]
    refused(write(short), "truncated: buffer 0")


def test_wrong_versions(write, triangle):
    data = bytearray(triangle.data())
    data[4] = 1
    refused(write(bytes(data)), "GLB version 1")
    triangle.json["asset"]["version"] = "1.0"
    refused(write(triangle), "glTF version 1.0")


def test_zero_triangles(write, glb, corners):
    refused(write(glb), "has no triangles")
    glb.node(mesh=glb.mesh({**glb.primitive(corners), "mode": 1}))
    refused(write(glb), "has no triangles")
    refused(write("v 0 0 0\nv 1 0 0\nv 0 1 0\n", "points.obj"), "has no triangles")
    head = "ply\nformat ascii 1.0\nelement vertex 1\n"
    head += "property float x\nproperty float y\nproperty float z\nend_header\n0 0 0\n"
    refused(write(head, "points.ply"), "has no triangles")


def test_index_out_of_range(write, glb, corners):
    glb.node(mesh=glb.mesh(glb.primitive(corners, [0, 1, 3]), name="tri"))
    refused(write(glb), "tri", "index 3", "3 vertices")
    refused(write("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "bad.obj"), "8")
    refused(write("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 -9\n", "negative.obj"))
    head = "ply\nformat ascii 1.0\nelement vertex 3\n"
    head += "property float x\nproperty float y\nproperty float z\n"
    head += "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    for index in (7, -1):
        refused(write(head + f"0 0 0\n1 0 0\n0 1 0\n3 0 1 {index}\n", "bad.ply"), str(index))


def test_nonfinite_vertices_are_skipped_and_counted(write, glb, corners):
    points = np.concatenate([corners, corners + 5, corners])
    points[4, 1] = np.nan
    points[6, 2] = -np.inf
    glb.node(mesh=glb.mesh(glb.primitive(points)))
    glb.node(mesh=glb.mesh(glb.primitive(corners)))
    scene = load_scene(write(glb))
    assert scene.notes == ("skipped 2 triangles with NaN or infinite vertices",)
    assert scene.triangle_count == 2
    for mesh in scene.meshes:
        assert np.isfinite(mesh.positions).all()
        np.testing.assert_array_equal(mesh.positions[mesh.triangles[0]], corners)
    np.testing.assert_array_equal(scene.bounds(), [[0, 0, 0], [1, 1, 0]])


def test_nonfinite_vertices_of_text_files(write):
    text = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv nan 0 0\nv inf 1 1\nf 1 2 3\nf 1 2 4\nf 2 3 5\n"
    scene = load_scene(write(text, "nan.obj"))
    assert scene.triangle_count == 1 and "skipped 2" in scene.notes[0]
    # finite in the file, beyond float32
    scene = load_scene(
        write("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1e39 0 0\nf 1 2 3\nf 1 2 4\n", "big.obj")
    )
    assert scene.triangle_count == 1 and "skipped 1" in scene.notes[0]


def test_only_nonfinite_triangles(write, glb):
    glb.node(mesh=glb.mesh(glb.primitive(np.full((3, 3), np.nan))))
    refused(write(glb), "all 1 triangles")
    refused(write("v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "nan.obj"), "all 1 triangles")


def test_degenerate_triangles_are_kept(write, glb, corners):
    glb.node(mesh=glb.mesh(glb.primitive(corners, [0, 1, 2, 1, 1, 2])))
    assert load_scene(write(glb)).triangle_count == 2


def test_unicode_and_odd_paths(write, triangle, tmp_path):
    for name in ("Küche 厨房 🦊.glb", "UPPER.GLB", "with space.glb"):
        assert load_scene(write(triangle, name)).triangle_count == 1
    assert load_scene(str(write(triangle, "ä.glb"))).name == "ä"
    assert load_scene(write("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "é ü.obj")).triangle_count == 1
    refused(tmp_path / "fehlt ü.glb", "fehlt ü.glb")


def test_unsupported_required_extension(write, triangle):
    triangle.json["extensionsRequired"] = ["KHR_draco_mesh_compression"]
    refused(write(triangle), "KHR_draco_mesh_compression")


def _broken(document, path, value):
    document = json.loads(json.dumps(document))
    item = document
    for key in path[:-1]:
        item = item[key]
    item[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("nodes", 0, "mesh"), 4, "meshes[4]"),
        (("nodes", 0, "mesh"), -1, "meshes[-1]"),
        (("nodes", 0, "camera"), 0, "cameras[0]"),
        (("scenes", 0, "nodes"), [3], "nodes[3]"),
        (("nodes", 0, "children"), [0], "reached twice"),
        (("nodes", 0, "scale"), [1, float("nan"), 1], "not finite"),
        (("nodes", 0, "matrix"), [1, 2, 3], "damaged"),
        (("nodes", 0, "extras"), {"treeline": {"mask": 256}}, "mask 256"),
        (("nodes", 0, "extras"), {"treeline": {"lifetime": "short"}}, "lifetime short"),
        (("nodes", 0, "extras"), {"treeline": {"area_light": {"size": [1]}}}, "size"),
        (("nodes", 0, "extras"), {"treeline": {"area_light": {"size": [1, 1]}}}, "radiance"),
        (("meshes", 0, "primitives", 0, "attributes"), {}, "no positions"),
        (("meshes", 0, "primitives", 0, "material"), 0, "materials[0]"),
        (("accessors", 0, "count"), 1000, "accessor 0"),
        (("accessors", 0, "count"), -1, "accessor 0"),
        (("accessors", 0, "type"), "VEC9", "VEC9"),
        (("accessors", 0, "bufferView"), 9, "bufferViews[9]"),
        (("bufferViews", 0, "byteLength"), 10**9, "bufferView 0"),
        (("bufferViews", 0, "buffer"), 1, "buffers[1]"),
        (("scene",), 7, "scenes[7]"),
        (("nodes",), "text", ""),
    ],
)
def test_damaged_documents(write, triangle, path, value, word):
    triangle.json = _broken(triangle.json, path, value)
    refused(write(triangle), word)


def test_damaged_image(write, glb, corners):
    image = glb.add("images", {"bufferView": glb.view(b"not a picture"), "name": "bark"})
    texture = glb.add("textures", {"source": image})
    pbr = {"baseColorTexture": {"index": texture}}
    index = glb.add("materials", {"pbrMetallicRoughness": pbr})
    glb.node(mesh=glb.mesh({**glb.primitive(corners), "material": index}))
    refused(write(glb), "bark cannot be decoded")


def test_random_damage_never_gives_a_traceback(write, triangle, rng):
    good = triangle.data()
    refusals = 0
    for _ in range(300):
        data = bytearray(good)
        for at in rng.integers(0, len(data), rng.integers(1, 8)):
            data[at] = rng.integers(256)
        try:
            load_scene(write(bytes(data)))
        except UserError as error:
            refusals += 1
            assert "\n" not in str(error)
    assert refusals > 100
