"""Spheres: bytes, builders, the oracle against float64, and what is dropped or refused."""

import numpy as np
import pytest

from bvh import layout, oracle
from bvh.blas import BuildOptions
from bvh.brute_force import closest_sphere
from bvh.build import build_blas
from bvh.build_spheres import build_sphere_blas
from bvh.builders import BUILDERS
from bvh.container import load, save
from bvh.decode import decode
from bvh.describe import describe
from bvh.encode import encode
from bvh.header import unpack_header
from bvh.quality import container_quality
from bvh.ray_sphere import (
    DISTANCE_ERROR,
    ROOT_ERROR,
    decode_place,
    encode_place,
    intersect_spheres,
)
from bvh.rays import MISS_ID, RayFlags, make_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.spheres import decode_spheres, sphere_bounds
from bvh.tlas import BvhInstance
from bvh.validate import validate
from engine.gpu.errors import UserError

UNIT = 2.0**-24


def blas(spheres, options=None, opaque=True):
    spheres = np.asarray(spheres, np.float64).reshape(-1, 4)
    count = len(spheres)
    ids = np.arange(count)
    return build_sphere_blas(
        spheres[:, :3], spheres[:, 3], np.zeros(count), ids, [opaque], options or BuildOptions()
    )


def scene(spheres, options=None, transform=None, opaque=True, **placed):
    matrix = np.eye(4) if transform is None else transform
    instance = BvhInstance(0, matrix, first_object=5, name="balls", **placed)
    return assemble([blas(spheres, options, opaque)], ["balls"], [instance], options)


def cloud(rng, count):
    """Spheres of sizes over two decades, some of which overlap, as float32 holds them."""
    centers = rng.uniform(-4, 4, (count, 3))
    radii = 10 ** rng.uniform(-2, 0, count)
    return np.column_stack([centers, radii]).astype(np.float32).astype(np.float64)


def aimed(rng, spheres, count):
    """Rays from all over at points in and around the spheres; lengths over many decades."""
    target = spheres[rng.integers(len(spheres), size=count)]
    to = target[:, :3] + target[:, 3:] * rng.normal(size=(count, 3)) * 0.7
    origin = rng.uniform(-6, 6, (count, 3))
    direction = (to - origin) * 10 ** rng.uniform(-6, 6, (count, 1))
    return make_rays(origin, direction)


def bound(spheres, rays, found):
    """[n] how far t of the oracle may be from float64's, in units of each direction."""
    at = spheres[np.maximum(found.triangle, 0)]
    f = rays["origin"].astype(np.float64) - at[:, :3]
    d = rays["direction"].astype(np.float64)
    length = np.linalg.norm(d, axis=1)
    nearest = f - (f * d).sum(1, keepdims=True) / length[:, None] ** 2 * d
    half = np.sqrt(np.maximum(at[:, 3] ** 2 - (nearest**2).sum(1), 1e-30))
    reach = np.linalg.norm(f, axis=1) + at[:, 3]
    grazing = half**2 < 2 * at[:, 3] * DISTANCE_ERROR * UNIT * reach
    return ROOT_ERROR * UNIT * reach * (1 + at[:, 3] / half) / length, grazing


@pytest.mark.parametrize("builder", [b.name for b in BUILDERS])
def test_the_oracle_agrees_with_float64_for_every_builder(rng, builder):
    spheres = cloud(rng, 60)
    bvh = scene(spheres, BuildOptions(builder=builder, nodes="auto"))
    assert validate(bvh) == []
    rays = aimed(rng, spheres, 1500)
    got, expected = oracle.trace(bvh.words, rays), closest_sphere(spheres, rays)
    limit, grazing = bound(spheres, rays, expected)
    same = got.hit == np.isfinite(expected.t)
    assert (same | grazing).all() and same.mean() > 0.99
    both = got.hit & same & ~grazing
    assert both.sum() > 500
    near = np.abs(got.t[both] - expected.t[both]) <= limit[both]
    other = got.primitive[both] != expected.triangle[both]  # two spheres as near as can be told
    assert near.all() and not (other & (np.abs(got.t[both] - expected.t[both]) > 0)).any()
    assert (got.object[both] == 5).all() and (got.instance[both] == 0).all()
    place = decode_place(got.u[both], got.v[both])
    wanted = decode_place(expected.u[both].astype(np.float32), expected.v[both].astype(np.float32))
    radius = spheres[expected.triangle[both], 3]
    slack = limit[both] * np.linalg.norm(rays["direction"][both].astype(np.float64), axis=1)
    assert (np.linalg.norm(place - wanted, axis=1) <= 4 * slack / radius + 2e-6).all()


def test_every_crossing_is_found(rng):
    spheres = cloud(rng, 40)
    rays = aimed(rng, spheres, 800)
    got = oracle.trace(scene(spheres).words, rays, count_all=True)
    expected = closest_sphere(spheres, rays)
    assert (got.crossings == expected.crossings).mean() > 0.99
    assert expected.crossings.max() > 4


def test_from_inside_behind_and_within_limits():
    words = scene([[0, 0, 0, 1]]).words

    def t(origin, direction=(0, 0, 1), low=0.0, high=np.inf):
        return float(oracle.trace(words, make_rays([origin], [direction], low, high)).t[0])

    assert t((0, 0, -3)) == 2.0
    assert t((0, 0, 0)) == 1.0  # inside: where it leaves
    assert t((0, 0, 3)) == np.inf  # behind
    assert t((0, 0, -3), low=2.5) == 4.0  # the entry lies before the interval
    assert t((0, 0, -3), low=2.0, high=4.0) == np.inf  # open at both ends
    assert t((0, 0, -3), high=1.9) == np.inf
    assert t((0, 0, -3), (0, 0, 2.0**-60)) == 2.0**61
    assert t((1.0000001, 0, -3)) == np.inf and t((0.9999, 0, -3)) < np.inf  # either side of grazing
    assert t((0, 0, 1)) == np.inf  # leaves the surface that it stands on
    assert t((0, 0, -1)) == 2.0  # crosses the sphere from its surface


def test_entering_is_the_front_and_leaving_the_back():
    words = scene([[0, 0, 0, 1]]).words
    ray = make_rays([(0, 0, -3)], [(0, 0, 1)])
    assert oracle.trace(words, ray, flags=RayFlags.CULL_BACK_FACING).t[0] == 2.0
    assert oracle.trace(words, ray, flags=RayFlags.CULL_FRONT_FACING).t[0] == 4.0


def test_an_ellipsoid_by_its_instance(rng):
    matrix = np.eye(4)
    matrix[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0] @ np.diag([0.2, 1.0, 3.0])
    matrix[:3, 3] = 4, -1, 2
    bvh = scene([[0, 0, 0, 1]], transform=matrix)
    assert validate(bvh) == []
    target = (matrix[:3, :3] @ rng.normal(size=(3, 400)) * 0.4).T + matrix[:3, 3]
    rays = make_rays(rng.normal(size=(400, 3)) * 9, target)
    rays["direction"] = target - rays["origin"]
    got = oracle.trace(bvh.words, rays)
    inverse = np.linalg.inv(matrix)
    local = make_rays(
        rays["origin"] @ inverse[:3, :3].T + inverse[:3, 3], rays["direction"] @ inverse[:3, :3].T
    )
    expected = closest_sphere([[0, 0, 0, 1]], local)
    both = got.hit & np.isfinite(expected.t)
    assert both.sum() > 200 and (got.hit == np.isfinite(expected.t)).mean() > 0.99
    assert np.abs(got.t[both] - expected.t[both]).max() < 1e-4


def test_masks_and_alpha(rng):
    bvh = scene([[0, 0, 0, 1], [0, 0, 5, 1]], opaque=False, mask=2)
    ray = make_rays([(0, 0, -3)], [(0, 0, 1)])
    assert not oracle.trace(bvh.words, ray, mask=1).hit[0]
    asked = []

    def accept(object, primitive, u, v):
        asked.extend(zip(object.tolist(), primitive.tolist(), v.round(6).tolist(), strict=True))
        return np.full(len(u), len(asked) == 3)

    got = oracle.trace(bvh.words, ray, mask=2, accept=accept)
    # Both crossings of the first are asked and refused, then the second's entry is taken.
    assert asked == [(5, 0, 0.5), (5, 0, 0.5), (5, 1, 0.5)]
    assert (got.t[0], got.primitive[0]) == (7.0, 1)
    forced = oracle.trace(bvh.words, ray, mask=2, accept=accept, flags=RayFlags.OPAQUE)
    assert forced.t[0] == 2.0 and len(asked) == 3


def test_places_go_round_trip_and_follow_the_textures_axes(rng):
    normal = rng.normal(size=(3, 2000))
    normal = (normal / np.linalg.norm(normal, axis=0)).astype(np.float32)
    u, v = encode_place(normal)
    assert np.abs(decode_place(u, v).T - normal).max() < 5e-7
    axes = np.array([[0, 1, 0], [0, -1, 0], [1, 0, 0], [0, 0, 1], [0, 0, -1]], np.float32).T
    u, v = encode_place(axes)
    assert v.tolist() == [0.0, 1.0, 0.5, 0.5, 0.5]
    assert u[2:].tolist() == [0.5, 0.75, 0.25]


def test_directions_of_any_length_give_the_same_points():
    one = np.float32(1)
    arrays = [np.array([[0.1], [0.2], [-3.0]], np.float32), np.zeros((3, 1), np.float32)]
    way = np.array([[0.01], [0.02], [0.7]], np.float32)
    plain = intersect_spheres(arrays[0], way, arrays[1], np.array([one]))
    for power in (-100, -60, 60, 120):
        scaled = intersect_spheres(arrays[0], np.ldexp(way, power), arrays[1], np.array([one]))
        assert (np.ldexp(scaled.t, power) == plain.t).all()
        assert np.abs(scaled.normal - plain.normal).max() < 1e-5


def test_what_is_no_sphere_is_dropped_and_counted():
    bad = [[0, 0, 0, 0], [0, 0, 0, -1], [0, 0, 0, 1e-30], [np.nan, 0, 0, 1], [0, 0, 0, np.inf]]
    built = blas([*bad, [1, 2, 3, 0.5]])
    assert (built.stats.spheres, built.stats.blocks) == (1, 1)
    assert (built.stats.dropped_degenerate, built.stats.dropped_nonfinite) == (3, 2)
    ray = make_rays([(1, 2, 0)], [(0, 0, 1)])
    assert oracle.trace(built.words, ray).primitive[0] == 5
    empty = blas(bad)
    assert empty.stats.blocks == 0
    assert oracle.trace(empty.words, ray).object[0] == MISS_ID
    with pytest.raises(UserError, match="spheres: a largest coordinate of 1e"):
        blas([[0, 0, 0, 1e15]])


def test_the_bytes_of_a_sphere():
    built = blas([[1, 2, 3, 0.5]], opaque=False)
    header = unpack_header(built.words)
    assert (header.sphere_count, header.leaf_count, header.primitive_count) == (1, 1, 1)
    assert built.words[1] == 3  # version
    pointer = int(built.words[32])
    offset, kind = layout.unpack_pointer(pointer)
    assert kind == 7
    node = built.words[offset // 4 : offset // 4 + 16]
    floats = node.view(np.float32)
    assert floats[:6].tolist() == [0.5, 1.5, 2.5, 1.5, 2.5, 3.5]
    assert floats[6:10].tolist() == [1, 2, 3, 0.5]
    assert node[10:].tolist() == [0, 0, 0, 0, 0, 0x0909]


def test_decode_describe_quality_and_file(rng, tmp_path):
    bvh = scene(cloud(rng, 30))
    words = bvh.blas_words(0)
    again, parents = encode(decode(words))
    assert (again == words).all()
    rows = decode_spheres(decode(words).leaves)
    assert sorted(rows.primitive.tolist()) == list(range(30))
    table = describe(bvh)["blas"][0]
    assert (table["spheres"], table["leaf_histogram"], table["triangles_per_leaf"]) == (
        30, [0, 0, 0, 0, 0], 0.0,
    )  # fmt: skip
    assert container_quality(words).leaves == 30
    save(tmp_path / "balls.npz", bvh)
    loaded = load(tmp_path / "balls.npz")
    assert validate(loaded) == [] and loaded.blas_stats[0].spheres == 30


def damaged(bvh: SceneBvh, word: int, value: int) -> list[str]:
    words = bvh.words.copy()
    words[word] = value
    fields = {name: getattr(bvh, name) for name in bvh.__dataclass_fields__}
    return [fault.message for fault in validate(SceneBvh(**{**fields, "words": words}))]


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (layout.SPHERE_RADIUS_WORD, 0, "sphere has no radius"),
        (layout.SPHERE_RADIUS_WORD, 0xBF800000, "sphere has no radius"),
        (layout.SPHERE_RADIUS_WORD, 0x7FC00000, "sphere is not finite"),
        (layout.SPHERE_CENTER_WORD, 0x7F800000, "sphere is not finite"),
        (layout.SPHERE_RADIUS_WORD, 0x42000000, "its own box does not enclose the sphere"),
        (layout.PROCEDURAL_MIN_WORD, 0x42000000, "its own box does not enclose the sphere"),
        (layout.TRIANGLE_GEOMETRY_WORD, 1, "geometry beyond the header's 1"),
        (layout.TRIANGLE_PRIMITIVE_0_WORD, 9, "two primitive ids"),
        (layout.TRIANGLE_FLAGS_WORD, 0x0902, "flags are not 0x909"),
        (layout.SPHERE_RESERVED_WORD, 1, "reserved words are not 0"),
    ],
)
def test_validate_names_a_damaged_sphere(at, value, message):
    bvh = scene([[0, 0, 0, 1], [3, 0, 0, 1]])
    first = int(bvh.blas_bases[0]) // 4
    leaf = first + unpack_header(bvh.words[first:]).leaf_unit * 16
    assert message in damaged(bvh, leaf + at, value)


def test_validate_holds_header_and_pointers_to_spheres():
    bvh = scene([[0, 0, 0, 1], [3, 0, 0, 1]])
    first = int(bvh.blas_bases[0]) // 4
    assert any("1 spheres of 2 leaves" in m for m in damaged(bvh, first + 24, 1))
    assert any(
        "illegal node type" in m for m in damaged(bvh, first + 32, int(bvh.words[first + 32]) - 7)
    )
    plain = build_blas(
        np.eye(3, dtype=np.float32)[None], np.zeros(1), np.zeros(1), [True], BuildOptions()
    )
    triangles = assemble([plain], ["t"], [BvhInstance(0, np.eye(4))])
    first = int(triangles.blas_bases[0]) // 4
    found = damaged(triangles, first + 32, triangles.words[first + 32] | 7)
    assert any("illegal node type" in message for message in found)


def test_boxes_are_rounded_outward_and_no_farther(rng):
    spheres = cloud(rng, 500)
    boxes = sphere_bounds(spheres[:, :3].astype(np.float32), spheres[:, 3].astype(np.float32))
    low, high = spheres[:, :3] - spheres[:, 3:], spheres[:, :3] + spheres[:, 3:]
    assert (boxes[:, 0] <= low).all() and (boxes[:, 1] >= high).all()
    inward = np.nextafter(boxes, np.stack([boxes[:, 1], boxes[:, 0]], axis=1))
    assert (inward[:, 0] > low).all() and (inward[:, 1] < high).all()
