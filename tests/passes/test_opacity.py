"""Opacity of triangles against dense samples of the alpha test, and what a build makes of it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bvh.blas_cache import blas_key
from bvh.build import BuildOptions, build_blas
from bvh.decode import decode, decode_triangles
from bvh.layout import GEOMETRY_OPAQUE
from bvh.validate import validate
from engine.gpu.errors import UserError
from engine.scene.material import Material, Texture
from engine.scene.mesh import Mesh, make_mesh
from engine.scene.upload import pack_scene
from passes.alpha import pack_alpha
from passes.build_blases import SharedBuilder
from passes.opacity import CLEAR, MIXED, OPAQUE, AlphaCells, traced, triangle_opacity
from passes.prepare import prepare
from passes.twins.accept_alpha import accept_candidate

WRAPS = ("repeat", "mirror", "clamp")
LEAF = Material("leaf", alpha_mode="MASK", alpha_cutoff=0.5, base_color_texture=0)
# One texel of four is a hole.
HOLE = np.array([[0, 255], [255, 255]])


def texture(alpha: Any, wrap_u: Any = "repeat", wrap_v: Any = "repeat") -> Texture:
    pixels = np.full((*np.shape(alpha), 4), 255, np.uint8)
    pixels[..., 3] = alpha
    return Texture("leaf", pixels, True, wrap_u, wrap_v)


def leaf_mesh(uvs: Any, alpha: Any = 255) -> Mesh:
    """A mesh of triangles with these `uvs` [m, 3, 2] and vertex alphas [m, 3]."""
    uvs = np.asarray(uvs, np.float32).reshape(-1, 2)
    number = np.arange(len(uvs))
    points = np.stack([number // 3 + (number % 3 == 1), number % 3 == 2, 0 * number], 1)
    colors = np.full((len(uvs), 4), 255, np.uint8)
    colors[:, 3] = np.broadcast_to(alpha, (len(uvs) // 3, 3)).reshape(-1)
    mesh = make_mesh("leaf", points, number.reshape(-1, 3), 0, colors=colors)
    return replace(mesh, uvs=uvs)


def classes(uvs: Any, image: Texture, material: Material = LEAF, alpha: Any = 255) -> list[int]:
    return triangle_opacity(leaf_mesh(uvs, alpha), material, AlphaCells(image)).tolist()


def sampled(kit: Any, mesh: Mesh, material: Material, image: Texture, points: int) -> Any:
    """[samples, m] whether the alpha test accepts: corners, edges and the inside."""
    scene = kit.scene([mesh], [material], textures=[image])
    pack = pack_scene(scene)
    words = pack_alpha(scene, pack)
    i, j = np.meshgrid(np.arange(points + 1), np.arange(points + 1))
    inside = i + j <= points
    count = len(mesh.triangles)
    u, v = (np.repeat((x[inside] / points).astype(np.float32), count) for x in (i, j))
    primitive = np.tile(np.arange(count, dtype=np.uint32), inside.sum())
    objects = np.zeros(len(primitive), np.uint32)
    return accept_candidate(words, pack.texels, objects, primitive, u, v).reshape(-1, count)


def small(x: float, y: float) -> Any:
    """A triangle half a texel of a 2 x 2 texture large, from texel coordinates (x, y) on."""
    return (np.array([[x, y], [x + 0.5, y], [x, y + 0.5]]) / 2)[None]


def test_two_by_two_texels() -> None:
    image = texture(HOLE)
    whole = [[0, 0], [1, 0], [0, 1]]
    assert classes([whole], image) == [MIXED]
    assert classes([whole], texture(HOLE * 0 + 128)) == [OPAQUE]
    assert classes([whole], texture(HOLE * 0 + 127)) == [CLEAR]
    # From texel centre (0.5) on texels blend: only squares of centres decide.
    assert classes(small(0.6, 0.6), image) == [MIXED]
    wide = texture(np.repeat(np.repeat(HOLE, 4, 0), 4, 1))  # each texel four across
    assert classes(small(1.2, 1.2), wide) == [OPAQUE]
    assert classes(small(0.2, 0.2), wide) == [CLEAR]
    assert classes(small(0.8, 0.2), wide) == [MIXED]


@pytest.mark.parametrize("wrap", WRAPS)
def test_texel_edges_and_wraps(wrap: Any) -> None:
    """Cells beside a hole are not opaque up to the centre of the next texel, and from there are;
    beyond the texture it is what its wrap mode says."""
    alpha = np.full((8, 8), 255)
    alpha[:, :2] = 0  # u from 0 to 0.25
    image = texture(alpha, wrap, "clamp")

    def strip(first: float, last: float) -> int:
        """The class of a sliver from texel coordinate `first` to `last`."""
        return classes([[[first / 8, 0.3], [last / 8, 0.3], [last / 8, 0.31]]], image)[0]

    assert strip(2.51, 7.4) == OPAQUE and strip(2.49, 7.4) == MIXED
    assert strip(0.51, 1.49) == CLEAR and strip(0.51, 1.51) == MIXED
    # One texel past the end: the hole again, the last texel mirrored, the last texel for ever.
    assert strip(7.51, 8.3) == {"repeat": MIXED, "mirror": OPAQUE, "clamp": OPAQUE}[wrap]
    assert strip(8.6, 9.4) == {"repeat": CLEAR, "mirror": OPAQUE, "clamp": OPAQUE}[wrap]
    assert strip(14.6, 15.4) == {"repeat": OPAQUE, "mirror": CLEAR, "clamp": OPAQUE}[wrap]
    assert strip(-1.4, -0.6) == {"repeat": OPAQUE, "mirror": CLEAR, "clamp": CLEAR}[wrap]
    # A thousand periods away, and with a triangle across all of one.
    far = {"repeat": OPAQUE, "mirror": OPAQUE, "clamp": OPAQUE}[wrap]
    assert strip(8003, 8007) == far
    assert strip(8002, 8020) == {"repeat": MIXED, "mirror": MIXED, "clamp": OPAQUE}[wrap]
    assert strip(-90, 90) == MIXED


def test_far_and_broken_coordinates_are_mixed() -> None:
    image = texture(HOLE)
    for value in (1e6, 1e30, np.inf, np.nan):
        assert classes([[[0, 0], [value, 0], [0, 1]]], image) == [MIXED], value
        assert classes([[[0, 0], [1, 0], [0, value]]], image) == [MIXED], value
    # Where the whole texture is accepted it does not matter where it is looked up.
    assert classes([[[0, 0], [np.nan, 0], [0, 1]]], texture(HOLE * 0 + 255)) == [OPAQUE]


def test_degenerate_footprints() -> None:
    """A point and lines: what they touch decides."""
    image = texture(np.repeat(np.repeat(HOLE, 4, 0), 4, 1))
    assert classes([[[0.8, 0.8]] * 3], image) == [OPAQUE]
    assert classes([[[0.2, 0.2]] * 3], image) == [CLEAR]
    assert classes([[[0.2, 0.8], [0.8, 0.8], [0.4, 0.8]]], image) == [OPAQUE]
    assert classes([[[0.2, 0.2], [0.8, 0.2], [0.4, 0.2]]], image) == [MIXED]
    assert classes([[[0.2, 0.2], [0.2, 0.8], [0.2, 0.4]]], image) == [MIXED]
    assert classes([[[0.8, 0.2], [0.8, 0.8], [0.8, 0.4]]], image) == [OPAQUE]


def test_the_footprint_is_the_triangle_not_its_box() -> None:
    """A hole in the corner that the triangle leaves out of its box."""
    alpha = np.full((16, 16), 255)
    alpha[10:, 10:] = 0
    image = texture(alpha, "clamp", "clamp")
    assert classes([[[0.05, 0.05], [0.9, 0.05], [0.05, 0.9]]], image) == [OPAQUE]
    assert classes([[[0.9, 0.9], [0.9, 0.05], [0.05, 0.9]]], image) == [MIXED]


def test_vertex_alpha_and_factor() -> None:
    image = texture(np.full((2, 2), 200))  # 0.784
    whole = [[[0, 0], [1, 0], [0, 1]]]
    assert classes(whole, image, alpha=[[255, 200, 180]]) == [OPAQUE]  # at least 0.55
    assert classes(whole, image, alpha=[[255, 200, 160]]) == [MIXED]  # 0.49 at a corner
    assert classes(whole, image, alpha=[[160, 100, 0]]) == [CLEAR]
    faint = replace(LEAF, base_color=(1, 1, 1, 0.6))
    assert classes(whole, image, faint) == [CLEAR]
    bare = replace(LEAF, base_color_texture=-1)
    for alpha, expected in (([128] * 3, OPAQUE), ([127] * 3, CLEAR), ([127, 255, 255], MIXED)):
        assert triangle_opacity(leaf_mesh(whole, [alpha]), bare, None).tolist() == [expected]
    # A cutoff that equals the alpha is accepted; nothing is rejected at a cutoff of zero.
    full = replace(bare, alpha_cutoff=1.0)
    assert triangle_opacity(leaf_mesh(whole), full, None).tolist() == [OPAQUE]
    assert classes(whole, texture(HOLE), replace(LEAF, alpha_cutoff=0.0)) == [OPAQUE]
    # 255 blended with 255 may round below 1: that the test has to say.
    assert classes(whole, texture(HOLE * 0 + 255), replace(LEAF, alpha_cutoff=1.0)) == [MIXED]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    wraps=st.tuples(st.sampled_from(WRAPS), st.sampled_from(WRAPS)),
    reach=st.sampled_from([0.02, 0.2, 1.0, 6.0]),
    far=st.sampled_from([0.0, 1.0, 300.0]),
    cutoff=st.sampled_from([0.0, 0.2, 0.5, 128 / 255, 0.9, 1.0]),
    grid=st.booleans(),
)
def test_no_class_contradicts_a_sample(
    kit: Any, seed: int, size: Any, wraps: Any, reach: float, far: float, cutoff: float, grid: bool
) -> None:
    rng = np.random.default_rng(seed)
    alpha = rng.choice([0, 100, 127, 128, 200, 255], size[::-1])
    if rng.random() < 0.7:  # large areas of one kind, as textures have
        alpha = np.repeat(np.repeat(alpha[:3, :3], 4, 0), 4, 1)
    image = texture(alpha, *wraps)
    uvs = far * rng.integers(-1, 2) + rng.random((24, 1, 2)) + reach * rng.random((24, 3, 2))
    if grid:  # corners exactly on texel edges and centres
        steps = 2.0 * np.array(alpha.shape[::-1])
        uvs = np.rint(uvs * steps) / steps
    mesh = leaf_mesh(uvs, rng.choice([255, 255, 180], (24, 3)))
    material = replace(LEAF, alpha_cutoff=cutoff)
    found = triangle_opacity(mesh, material, AlphaCells(image))
    accepted = sampled(kit, mesh, material, image, 24)
    assert accepted[:, found == OPAQUE].all()
    assert not accepted[:, found == CLEAR].any()


def test_most_of_a_texture_is_decided(kit: Any, rng: Any) -> None:
    """What samples find to be of one kind is mixed only near texels of the other."""
    alpha = np.repeat(np.repeat(rng.choice([0, 255], (4, 4)), 16, 0), 16, 1)
    image = texture(alpha)
    uvs = rng.random((400, 1, 2)) + 0.1 * rng.random((400, 3, 2))
    mesh = leaf_mesh(uvs)
    found = triangle_opacity(mesh, LEAF, AlphaCells(image))
    accepted = sampled(kit, mesh, LEAF, image, 24)
    alike = accepted.all(0) | ~accepted.any(0)
    assert 100 < (found != MIXED).sum() > 0.85 * alike.sum()


# -- what becomes of it ------------------------------------------------------------------------


def leafy(kit: Any, alpha: Any) -> Any:
    """A grid of leaves over an 8 x 8 texture in front of a mirror, lit through it."""
    mesh = kit.quad((-1, -1, 0), (2, 0, 0), (0, 2, 0), 1, cells=8)
    wall = kit.quad((-12, -9, -2), (24, 0, 0), (0, 18, 0), 0)
    leaf = replace(LEAF, roughness=0.1)
    return kit.scene(
        [wall, mesh],
        [kit.grey(roughness=0.0), leaf],
        textures=[texture(alpha, "clamp", "clamp")],
        eye=(3.0, 0.1, 3.5),
        target=(0.5, 0.0, -0.7),
        light=kit.lamp((0.4, 0.3, 3.0), 0.05, (0, 0, -1), (9, 9, 9)),
    )


def half_holes() -> Any:
    alpha = np.full((16, 16), 255)
    alpha[:7] = 0
    return alpha


def rows_of(prepared: Any, blas: int) -> Any:
    image = decode(prepared.bvh.blas_words(blas))
    return decode_triangles(image.leaves, image.leaf_types, image.fan_ids)


@pytest.mark.parametrize("leaf", [1, 2, 4])
@pytest.mark.parametrize("pairing", ["near", "best"])
def test_blocks_say_what_was_found(kit: Any, pairing: str, leaf: int) -> None:
    options = BuildOptions("lbvh", leaf=leaf, reinsertion=0, pairing=pairing)
    prepared = prepare(leafy(kit, half_holes()), options)
    classes = prepared.opacity[1]
    assert prepared.opacity_counts() == {
        "opaque": 2 + int((classes == OPAQUE).sum()),
        "mixed": int((classes == MIXED).sum()),
        "clear": int((classes == CLEAR).sum()),
    }
    assert min(np.bincount(classes, minlength=3)) >= 16 and prepared.asks
    assert validate(prepared.bvh) == []
    rows = rows_of(prepared, prepared.bvh.blas_names.index("quad"))
    kept = np.flatnonzero(classes != CLEAR)
    assert sorted(rows.primitive) == kept.tolist()
    np.testing.assert_array_equal(rows.opaque, classes[rows.primitive] == OPAQUE)
    if leaf > 1:
        assert len(np.unique(rows.block)) < len(kept)


@pytest.mark.parametrize("alpha", [half_holes(), np.zeros((4, 4))])
def test_the_device_builds_the_same_bytes(device: Any, kit: Any, alpha: Any) -> None:
    scene, options = leafy(kit, alpha), BuildOptions("lbvh", reinsertion=0)
    build = SharedBuilder(device, all_there=True).build
    there, here = prepare(scene, options, build=build), prepare(scene, options)
    assert there.bvh.words.tobytes() == here.bvh.words.tobytes()


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_hits_are_those_of_the_material(kit: Any, draw: Any, gbuffer: str) -> None:
    scene = leafy(kit, half_holes())
    drawn = {
        opacity: draw(
            scene, 48, 36, build=BuildOptions(opacity=opacity), gbuffer=gbuffer, count=True
        )
        for opacity in ("material", "triangle")
    }
    one, other = drawn["material"], drawn["triangle"]
    assert one.frame.result_hash() == other.frame.result_hash()
    np.testing.assert_array_equal(one.frame.image(), other.frame.image())
    for ray in ("reflection", "shadow"):
        before, after = one.stats.rays[ray], other.stats.rays[ray]
        assert 0 < after.any_hits < 0.6 * before.any_hits
        assert (after.rays, after.hits) == (before.rays, before.hits)
    assert set(one.prepared.opacity[1]) == {MIXED}


@pytest.mark.parametrize(("alpha", "hits"), [(0, False), (255, True)])
def test_leaves_of_one_kind_ask_nobody(kit: Any, draw: Any, alpha: int, hits: bool) -> None:
    """All opaque is solid; all clear is an empty BLAS that nothing hits."""
    scene = leafy(kit, np.full((4, 4), alpha))
    drawn = draw(scene, 32, 24, count=True)
    assert not drawn.prepared.asks and validate(drawn.prepared.bvh) == []
    assert (drawn.aov("object") == 1).any() == hits
    counts = [drawn.stats.rays[ray].any_hits for ray in ("reflection", "shadow")]
    assert counts == [0, 0] and drawn.stats.valid
    by_rays = draw(scene, 32, 24, gbuffer="rays")
    np.testing.assert_array_equal(by_rays.aov("object"), drawn.aov("object"))


def test_opacity_is_part_of_the_cache_key(rng: Any) -> None:
    corners = rng.random((4, 3, 3)).astype(np.float32)
    classes = np.array([OPAQUE, MIXED, MIXED, OPAQUE], np.uint8)
    keys = set()
    for marks in (classes, classes[::-1][[0, 1, 0, 1]], np.full(4, MIXED, np.uint8)):
        geometry, primitive, opaque, kept = traced([marks])
        keys.add(blas_key(corners[kept], geometry, primitive, opaque, BuildOptions()))
    assert len(keys) == 3


def test_geometry_words_are_checked(rng: Any) -> None:
    corners, primitive = rng.random((2, 3, 3)), np.arange(2)
    opaque, options = np.zeros(1, np.bool_), BuildOptions(reinsertion=0)
    geometry = np.array([0, GEOMETRY_OPAQUE])
    blas = build_blas(corners, geometry, primitive, opaque, options)
    assert blas.geometry_count == 1
    with pytest.raises(ValueError, match="has no entry"):
        build_blas(corners, geometry + 1, primitive, opaque, options)
    with pytest.raises(UserError, match="unknown opacity 'leaf'"):
        BuildOptions(opacity="leaf")
