"""The arrays of the storage buffers, down to the byte."""

from dataclasses import fields, replace

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.default_view import with_default_view
from engine.scene.load import load_scene
from engine.scene.material import Material, Texture
from engine.scene.mesh import make_mesh
from engine.scene.mips import SRGB_TO_LINEAR, linear_to_srgb_bytes, mip_chain
from engine.scene.records import NO_STORED_NORMAL
from engine.scene.scene import Instance, Parts
from engine.scene.upload import decode_normals, encode_normals, pack_scene


def _scene(corners, **changes):
    square = np.float32([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    meshes = (
        make_mesh("tri", corners, np.array([[0, 1, 2]]), 1, colors=np.array([[1, 2, 3, 4]] * 3)),
        make_mesh("quad", square, np.array([[0, 1, 2], [0, 2, 3]]), 0, uvs=square[:, :2] * 7),
    )
    moved = np.eye(4)
    moved[:3] = [[0, -2, 0, 5], [2, 0, 0, 6], [0, 0, 4, 7]]
    parts = Parts(
        meshes,
        (
            Material("glass", (0.1, 0.2, 0.3, 0.4), 0.5, 0.6, (7, 8, 9), "MASK", 0.7, True, 1, 0),
            Material("plain", alpha_cutoff=0.9),
        ),
        (
            Texture("a", np.zeros((2, 4, 4), np.uint8), False, "clamp", "mirror"),
            Texture("b", np.full((1, 1, 4), (1, 2, 3, 4), np.uint8), True),
        ),
        (
            Instance("q", 1, moved, mask=5),
            Instance("t", 0, np.eye(4)),
            Instance("q2", 1, np.eye(4)),
        ),
    )
    return with_default_view(replace(parts, **changes), "hand-made")


def test_record_bytes(corners):
    pack = pack_scene(_scene(corners))
    vertices = pack.vertices.view("<u4").reshape(-1, 8)
    assert vertices.shape == (7, 8)
    floats = vertices.view("<f4")
    np.testing.assert_array_equal(floats[:3, :3], corners)
    np.testing.assert_array_equal(floats[5, 4:6], [7, 7])
    assert vertices[0, 3] == NO_STORED_NORMAL and vertices[0, 6] == 0x04030201
    assert vertices[3, 6] == 0xFFFFFFFF
    np.testing.assert_array_equal(pack.indices, [0, 1, 2, 3, 4, 5, 3, 5, 6])

    objects = pack.objects.view("<u4").reshape(3, 28)
    rows = objects[0, :24].view("<f4").reshape(2, 3, 4)
    np.testing.assert_array_equal(rows[0], [[0, -2, 0, 5], [2, 0, 0, 6], [0, 0, 4, 7]])
    both = np.vstack([rows[1], [0, 0, 0, 1]]) @ np.vstack([rows[0], [0, 0, 0, 1]])
    np.testing.assert_allclose(both, np.eye(4), atol=1e-6)
    # first triangle, count, material, mask; instances of one mesh share its triangles
    np.testing.assert_array_equal(objects[:, 24:], [[1, 2, 0, 5], [0, 1, 1, 255], [1, 2, 0, 255]])

    materials = pack.materials.view("<u4").reshape(2, 16)
    numbers = np.float32([0.1, 0.2, 0.3, 0.4, 7, 8, 9, 0.5, 0.6, 0.7])
    np.testing.assert_array_equal(materials[0, :10].view("<f4"), numbers)
    np.testing.assert_array_equal(materials[0, 10:13], [1, 0, 2])
    np.testing.assert_array_equal(materials[1, 9:13], [0, 0xFFFFFFFF, 0xFFFFFFFF, 1])

    table = pack.texture_table.view("<u4").reshape(2, 8)
    # first texel, width, height, mips, flags: clamp in u, mirror in v; then sRGB and repeat
    np.testing.assert_array_equal(table[0, :5], [0, 4, 2, 3, 1 << 1 | 2 << 3])
    np.testing.assert_array_equal(table[1, :5], [8 + 2 + 1, 1, 1, 1, 1])
    assert len(pack.texels) == 12 and pack.texels[11] == 0x04030201
    sizes = [getattr(pack, field.name).nbytes for field in fields(pack)]
    assert sizes == [7 * 32, 9 * 4, 3 * 112, 2 * 64, 2 * 32, 12 * 4]


def test_without_textures_there_is_one_neutral_texel(corners):
    scene = _scene(corners, textures=(), materials=())
    pack = pack_scene(scene)
    (material,) = pack.materials
    assert material["flags"] == 1 and material["base_color_texture"] == -1
    assert len(pack.texture_table) == 1 and pack.texels.tolist() == [0xFFFFFFFF]
    assert pack.texture_table[0]["mip_count"] == 1


@pytest.mark.parametrize("scale", [0.0, np.nan, 1e39])
def test_transform_that_has_no_inverse_is_refused_by_name(corners, scale):
    scene = _scene(corners)
    broken = Instance("flat one", 0, np.diag([1.0, scale, 1.0, 1.0]))
    with pytest.raises(UserError, match="flat one"):
        pack_scene(replace(scene, instances=(broken,)))


def test_normals_survive_octahedral_coding(rng):
    normals = rng.normal(size=(20_000, 3))
    axes = np.vstack([np.eye(3), -np.eye(3), [[1, 1, -1], [-1, 1, -1], [1, -1, -1], [-1, -1, -1]]])
    normals = np.vstack([normals, axes])
    normals = (normals / np.linalg.norm(normals, axis=1, keepdims=True)).astype(np.float32)
    codes = encode_normals(normals)
    assert not (codes == NO_STORED_NORMAL).any()
    error = np.linalg.norm(np.cross(decode_normals(codes), normals), axis=1)
    assert error.max() < 1e-4 and (decode_normals(codes) * normals).sum(axis=1).min() > 0.99
    zero = encode_normals(np.zeros((1, 3), np.float32))
    assert zero[0] == NO_STORED_NORMAL and not decode_normals(zero).any()


def test_octahedral_code_by_hand():
    # (3, 0, 4)/5 projects to x = 3/7, y = 0
    assert encode_normals(np.float32([[0.6, 0, 0.8]]))[0] == round(3 / 7 * 32767)
    # below the equator the corner folds out: (0, 0, -1) is (1, 1)
    assert encode_normals(np.float32([[0, 0, -1]]))[0] == 0x7FFF7FFF


def test_mips_average_light_not_codes():
    pixels = np.zeros((1, 2, 4), np.uint8)
    pixels[0, 1] = 255
    levels = mip_chain(Texture("t", pixels, srgb=True))
    assert levels[1].tolist() == [[[188, 188, 188, 128]]], "half the light is code 188, not 128"
    levels = mip_chain(Texture("t", pixels, srgb=False))
    assert levels[1].tolist() == [[[128, 128, 128, 128]]]


@pytest.mark.parametrize(("height", "width"), [(1, 1), (5, 3), (8, 2), (7, 1), (1, 6), (16, 16)])
def test_mip_sizes_and_mean(height, width, rng):
    pixels = rng.integers(0, 256, (height, width, 4)).astype(np.uint8)
    levels = mip_chain(Texture("t", pixels, srgb=False))
    assert levels[-1].shape[:2] == (1, 1)
    for index, level in enumerate(levels):
        assert level.shape[:2] == (max(1, height >> index), max(1, width >> index))
        # no texel is dropped and none counts twice, whatever the size
        np.testing.assert_allclose(level.mean((0, 1)), pixels.mean((0, 1)), atol=0.5)


def test_srgb_codes_survive_the_round_trip():
    codes = np.arange(256)
    np.testing.assert_array_equal(linear_to_srgb_bytes(SRGB_TO_LINEAR[codes]), codes)


def test_kitchen_pack(shared_scenes):
    scene = load_scene(shared_scenes / "kitchen.glb")
    pack = pack_scene(scene)
    assert len(pack.indices) == 3 * scene.triangle_count
    assert pack.indices.max() < len(pack.vertices)
    last = pack.objects[-1]
    mesh = scene.meshes[scene.instances[-1].mesh]
    first = 3 * int(last["first_triangle"])
    flat = pack.indices[first : first + 3 * int(last["triangle_count"])]
    np.testing.assert_array_equal(
        pack.vertices["position"][flat], mesh.positions[mesh.triangles].reshape(-1, 3)
    )
