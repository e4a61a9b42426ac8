"""OBJ, PLY and STL: made here by hand, so that each stored value is known."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

from engine.scene.load import load_scene

QUAD = """
v 0 0 0
v 2 0 0
v 2 1 0
v 0 1 0
vt 0 0
vt 1 0
vt 1 0.75
vt 0 0.75
"""


def test_obj_quad_is_triangulated_and_v_turned(write):
    scene = load_scene(write(QUAD + "f 1/1 2/2 3/3 4/4\n", "quad.obj"))
    (mesh,) = scene.meshes
    assert scene.triangle_count == 2
    a, b, c = (mesh.positions[mesh.triangles[:, k]] for k in range(3))
    np.testing.assert_array_equal(np.cross(b - a, c - a), [[0, 0, 2]] * 2)
    top = mesh.positions[:, 1] == 1
    np.testing.assert_array_equal(mesh.uvs[top, 1], 0.25)
    np.testing.assert_array_equal(mesh.uvs[~top, 1], 1.0)
    np.testing.assert_array_equal(mesh.uvs[:, 0], mesh.positions[:, 0] / 2)
    assert not mesh.normals.any(), "trimesh computes normals on request; none are stored"
    assert scene.textures == () and scene.materials[0].metallic == 0
    assert (scene.camera_source, scene.light_source) == ("default", "default")


def test_obj_with_latin_1_names(write):
    text = "o Stra\u00dfe\n" + QUAD + "f 1 2 3\n"
    assert load_scene(write(text.encode("latin-1"), "l.obj")).triangle_count == 1


def test_obj_stored_normals(write):
    text = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvn 0 3 4\nf 1//1 2//1 3//1\n"
    (mesh,) = load_scene(write(text, "n.obj")).meshes
    np.testing.assert_allclose(mesh.normals, [[0, 0.6, 0.8]] * 3)


def test_obj_materials(write):
    image = io.BytesIO()
    Image.new("RGB", (2, 2), (10, 20, 30)).save(image, "png")
    write(image.getvalue(), "wood.png")
    write(
        "newmtl wood\nKd 0.25 0.5 0.001\nNs 6\nmap_Kd wood.png\nnewmtl glass\nKd 1 1 1\nd 0.25\n",
        "m.mtl",
    )
    text = "mtllib m.mtl\n" + QUAD + "usemtl wood\nf 1/1 2/2 3/3\nusemtl glass\nf 1/1 3/3 4/4\n"
    path = write(text, "m.obj")
    scene = load_scene(path)
    by_name = {scene.materials[m.material].name: m for m in scene.meshes}
    wood = scene.materials[by_name["wood"].material]
    assert wood.base_color == (0.25, 0.5, 0.001, 1.0)
    assert wood.roughness == pytest.approx((2 / 8) ** 0.25)
    texture = scene.textures[wood.base_color_texture]
    assert texture.srgb and texture.pixels[0, 0].tolist() == [10, 20, 30, 255]
    glass = scene.materials[by_name["glass"].material]
    assert glass.base_color[3] == 0.25 and glass.alpha_mode == "BLEND"
    write("newmtl wood\nKd 1 0 0\n", "m.mtl")
    assert load_scene(path).sha256 != scene.sha256, "the checksum covers the .mtl"


def test_obj_without_its_mtl(write):
    scene = load_scene(write("mtllib gone.mtl\n" + QUAD + "usemtl x\nf 1 2 3\n", "m.obj"))
    assert scene.triangle_count == 1 and scene.materials[0].base_color_texture == -1


PLY = """ply
format {format} 1.0
element vertex 3
property float x
property float y
property float z
{color}element face {faces}
property list uchar int vertex_indices
end_header
"""


def test_ply_ascii_and_binary_agree(write):
    head = PLY.format(format="ascii", color="", faces=1)
    text = load_scene(write(head + "0 0 0\n1 0 0\n0 1.5 0\n3 0 1 2\n", "a.ply")).meshes[0]
    head = PLY.format(format="binary_little_endian", color="", faces=1)
    data = struct.pack("<9fBiii", 0, 0, 0, 1, 0, 0, 0, 1.5, 0, 3, 0, 1, 2)
    binary = load_scene(write(head.encode() + data, "b.ply")).meshes[0]
    np.testing.assert_array_equal(text.positions, binary.positions)
    np.testing.assert_array_equal(text.triangles, binary.triangles)
    np.testing.assert_array_equal(text.positions[2], [0, 1.5, 0])


def test_ply_vertex_colors_become_linear(write):
    color = "property uchar red\nproperty uchar green\nproperty uchar blue\n"
    head = PLY.format(format="ascii", color=color, faces=1)
    rows = "0 0 0 188 0 255\n1 0 0 0 0 0\n0 1 0 255 255 255\n3 0 1 2\n"
    (mesh,) = load_scene(write(head + rows, "c.ply")).meshes
    assert mesh.colors[0].tolist() == [128, 0, 255, 255]


def test_stl_ascii_and_binary_agree_and_keep_degenerate_triangles(write):
    triangles = np.float32([[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[2, 2, 2]] * 3])
    loops = "".join(
        "facet normal 0 0 1\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*v) for v in t)
        + "endloop\nendfacet\n"
        for t in triangles
    )
    text = load_scene(write(f"solid s\n{loops}endsolid s\n", "a.stl"))
    body = b"".join(struct.pack("<3f", 0, 0, 1) + t.tobytes() + b"\0\0" for t in triangles)
    head = struct.pack("<I", 2)
    binary = load_scene(write(bytes(80) + head + body, "b.stl"))
    confusing = load_scene(write(b"solid".ljust(80) + head + body, "c.stl"))
    for scene in (text, binary, confusing):
        (mesh,) = scene.meshes
        np.testing.assert_array_equal(mesh.positions[mesh.triangles], triangles)
        assert not mesh.normals.any()
