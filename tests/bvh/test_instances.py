"""Two levels: transforms, t across them, masks, flags and their precedence, damaged pointers."""

import numpy as np
import pytest

from bvh import layout, oracle
from bvh.brute_force import closest
from bvh.layout import InstanceFlags
from bvh.rays import MISS_ID, RayFlags, make_rays
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from engine.gpu.errors import UserError

TRIANGLE = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]], np.float32)
DOWN = make_rays([[0.25, 0.125, 1]], [0, 0, -1])


def affine(linear=None, shift=(0, 0, 0)):
    matrix = np.eye(4)
    matrix[:3, :3] = np.eye(3) if linear is None else linear
    matrix[:3, 3] = shift
    return matrix


def rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q *= np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def random_placements(rng, count):
    """Rotated, non-uniformly scaled and, every third one, mirrored."""
    out = []
    for i in range(count):
        scale = np.diag(np.exp(rng.uniform(-1, 1, 3)) * (1, 1, -1 if i % 3 == 0 else 1))
        out.append(affine(rotation(rng) @ scale @ rotation(rng), rng.normal(size=3) * 4))
    return out


def place(matrix, triangles):
    return triangles.astype(np.float64) @ matrix[:3, :3].T + matrix[:3, 3]


@pytest.mark.parametrize("options", [{}, {"nodes": "fp16"}, {"nodes": "fp32", "leaf": 1}], ids=str)
def test_transformed_instances_equal_brute_force_in_world_space(tracers, built, rng, options):
    soups = [
        (rng.normal(size=(n, 1, 3)) + rng.normal(size=(n, 3, 3)) * 0.4).astype(np.float32)
        for n in (60, 1, 200)
    ]
    placements = random_placements(rng, 9)
    instances = [BvhInstance(i % 3, m, first_object=100 + 7 * i) for i, m in enumerate(placements)]
    scene = assemble([built.blas(s, **options) for s in soups], ["a", "b", "c"], instances)
    world = [place(m, soups[i % 3]) for i, m in enumerate(placements)]
    owner = np.concatenate([np.full(len(w), i) for i, w in enumerate(world)])
    row = np.concatenate([np.arange(len(w)) for w in world])
    origin = rng.normal(size=(2500, 3)) * 6
    # Each instance is aimed at equally often, the one-triangle BLAS too.
    centroids = [w.mean(1)[rng.integers(0, len(w), 1000)] for w in world]
    target = np.concatenate(centroids)[rng.integers(0, 9000, 2500)] + rng.normal(size=(2500, 3)) / 5
    direction = (target - origin) * np.exp(rng.uniform(-3, 3, (2500, 1)))
    rays = make_rays(origin, direction, 0.01, 40)
    got, want = tracers(scene, rays), closest(np.concatenate(world), rays)
    assert 800 < got.hit.sum() < 2480 and len(set(got.instance[got.hit])) == 9
    assert (got.hit == np.isfinite(want.t)).all()
    hit = got.hit
    # t of the given, non-unit direction: float32 transforms cost a few ULPs of the coordinates.
    length = np.linalg.norm(rays["direction"][hit].astype(float), axis=1)
    assert np.abs((got.t[hit] - want.t[hit]) * length).max() < 2e-4
    assert (got.instance[hit] == owner[want.triangle[hit]]).all()
    assert (got.primitive[hit] == row[want.triangle[hit]]).all()
    assert (got.object[hit] == 100 + 7 * got.instance[hit]).all()
    assert (got.object[~hit] == MISS_ID).all() and (got.instance[~hit] == MISS_ID).all()
    any_hit = tracers(scene, rays, any_hit=True)
    assert (any_hit.hit == hit).all()
    counted = tracers(scene, rays, count_all=True)
    assert (counted.crossings == want.crossings).all()


@pytest.mark.parametrize("leaf", [1, 2])
def test_barycentrics_belong_to_the_original_vertices(tracers, built, rng, leaf):
    # A height field pairs well, so that both triangle types and every rotation occur.
    n = 12
    x, y = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    grid = np.stack([x, y, rng.uniform(0, 1, (n, n))], -1).astype(np.float32)
    a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    soup = np.concatenate([np.stack(t, -2).reshape(-1, 3, 3) for t in ((a, b, c), (a, c, d))])
    turn = rng.integers(0, 3, len(soup))
    soup = np.stack([np.roll(t, k, 0) for t, k in zip(soup, turn, strict=True)])
    matrix = random_placements(rng, 1)[0]
    scene = built.scene(soup, matrix, leaf=leaf)
    weights = rng.dirichlet((1, 1, 1), 3000)
    target = (weights[:, :, None] * place(matrix, soup[rng.integers(0, len(soup), 3000)])).sum(1)
    origin = place(matrix, np.array([[6.0, 6, 30]]))
    rays = make_rays(origin, target - origin)
    got = tracers(scene, rays)
    assert got.hit.all()
    world = place(matrix, soup)[got.primitive]
    u, v = got.u[:, None], got.v[:, None]
    point = (1 - u - v) * world[:, 0] + u * world[:, 1] + v * world[:, 2]
    travelled = rays["origin"] + got.t[:, None] * rays["direction"].astype(float)
    assert np.abs(point - travelled).max() < 1e-3
    if leaf == 2:
        pointer = oracle.trace(scene.words, rays).pointer.astype(np.int64)
        kinds, flags = pointer & 7, scene.words[((pointer & ~7) << 1) + 15]
        assert set(kinds) == {0, 1}
        assert len(set((flags >> 8 * kinds) & 0xF)) == 3  # all three rotations were undone


def test_t_survives_a_doubled_axis_and_a_renormalised_direction_would_not(tracers, built):
    scene = built.scene(TRIANGLE, affine(np.diag([1, 1, 0.5])))  # world z = object z / 2
    rays = make_rays([[0.25, 0.125, 1]], [0, 0, -1])
    assert tracers(scene, rays).t[0] == 1
    # The shortcut: the object-space ray (z 2, direction -2) with its direction made unit again.
    unit = make_rays([[0.25, 0.125, 2]], [0, 0, -1])
    assert tracers(built.scene(TRIANGLE), unit).t[0] == 2


def test_renormalising_would_choose_the_wrong_instance(tracers, built):
    near = BvhInstance(0, affine(np.diag([1, 1, 0.1]), (0, 0, 0.5)))  # object ray is 10x longer
    far = BvhInstance(0, affine(shift=(0, 0, 0)))
    scene = assemble([built.blas(TRIANGLE)], ["t"], [far, near])
    got = tracers(scene, DOWN)
    assert (got.t[0], got.instance[0]) == (0.5, 1)
    # Unit directions would compare 5 (object units of `near`) with 1 and keep `far`.
    object_t = (1 - 0.5) / 0.1
    assert object_t > 1


def test_masks_select_instances(built):
    blas = built.blas(TRIANGLE)
    instances = [
        BvhInstance(0, affine(shift=(0, 0, -i)), mask=m)
        for i, m in enumerate((0x01, 0x82, 0, 0xFF))
    ]
    scene = assemble([blas], ["t"], instances)
    for mask, first in ((0xFF, 0), (0x01, 0), (0x02, 1), (0x80, 1), (0x04, 3), (0, None)):
        got = oracle.trace(scene.words, DOWN, mask=mask)
        assert got.instance[0] == (MISS_ID if first is None else first), mask
    counted = oracle.trace(scene.words, DOWN, mask=0x80, count_all=True)
    assert counted.crossings[0] == 2
    assert counted.counters.instance_hits[0] == 2  # a masked instance is not entered


@pytest.mark.parametrize("geometry_opaque", [True, False])
@pytest.mark.parametrize(
    ("instance", "ray", "verdict"),
    [
        (0, RayFlags.NONE, None),  # None: as the geometry says
        (InstanceFlags.FORCE_OPAQUE, RayFlags.NONE, True),
        (InstanceFlags.FORCE_NON_OPAQUE, RayFlags.NONE, False),
        (InstanceFlags.FORCE_OPAQUE | InstanceFlags.FORCE_NON_OPAQUE, RayFlags.NONE, False),
        (InstanceFlags.FORCE_NON_OPAQUE, RayFlags.OPAQUE, True),
        (InstanceFlags.FORCE_OPAQUE, RayFlags.NON_OPAQUE, False),
        (0, RayFlags.OPAQUE | RayFlags.NON_OPAQUE, False),
    ],
)
def test_opacity_precedence(built, geometry_opaque, instance, ray, verdict):
    scene = assemble(
        [built.blas(TRIANGLE, opaque=geometry_opaque)],
        ["t"],
        [BvhInstance(0, flags=InstanceFlags(instance))],
    )
    opaque = geometry_opaque if verdict is None else verdict
    reject = oracle.trace(
        scene.words, DOWN, flags=ray, accept=lambda objects, *_: np.zeros(len(objects), bool)
    )
    assert reject.hit[0] == opaque and reject.counters.any_hits[0] == (not opaque)
    for cull, dropped in ((RayFlags.CULL_OPAQUE, opaque), (RayFlags.CULL_NON_OPAQUE, not opaque)):
        got = oracle.trace(scene.words, DOWN, flags=ray | cull)
        assert got.hit[0] == (not dropped)
        assert got.counters.triangle_hits[0] == (not dropped)


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("disable", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
def test_facing_cull_precedence(built, below, flip, disable, mirrored):
    flags = InstanceFlags.NONE
    if flip:
        flags |= InstanceFlags.FLIP_FACING
    if disable:
        flags |= InstanceFlags.DISABLE_FACING_CULL
    # Facing is decided in object space: the mirror moves the origin to the other side of the
    # triangle there, as it does for anything else.
    matrix = affine(np.diag([1, 1, -1])) if mirrored else affine()
    scene = assemble([built.blas(TRIANGLE)], ["t"], [BvhInstance(0, matrix, flags=flags)])
    side = -1 if below else 1
    rays = make_rays([[0.25, 0.125, side]], [0, 0, -side])
    front = (not below) ^ mirrored ^ flip
    culled = {RayFlags.CULL_BACK_FACING: not front, RayFlags.CULL_FRONT_FACING: front}
    for flag, dropped in culled.items():
        assert oracle.trace(scene.words, rays, flags=flag).hit[0] == (disable or not dropped)
    both = RayFlags.CULL_BACK_FACING | RayFlags.CULL_FRONT_FACING
    assert oracle.trace(scene.words, rays, flags=both).hit[0] == disable


def test_an_in_plane_mirror_keeps_the_object_space_facing(built):
    # x -> -x reverses the winding seen in world space; in object space nothing changes.
    scene = built.scene(TRIANGLE, affine(np.diag([-1, 1, 1])))
    rays = make_rays([[-0.25, 0.125, 1]], [0, 0, -1])
    assert oracle.trace(scene.words, rays, flags=RayFlags.CULL_BACK_FACING).hit[0]
    assert not oracle.trace(scene.words, rays, flags=RayFlags.CULL_FRONT_FACING).hit[0]


def test_empty_blas_and_empty_tlas_are_missed(tracers, built):
    empty = built.blas(np.empty((0, 3, 3)))
    scene = assemble([empty, built.blas(TRIANGLE)], ["e", "t"], [BvhInstance(0), BvhInstance(1)])
    got = tracers(scene, DOWN)
    assert got.t[0] == 1 and got.instance[0] == 1
    for nothing in (assemble([], [], []), assemble([empty], ["e"], [BvhInstance(0)])):
        assert not tracers(nothing, DOWN).hit[0]


def test_twin_instances_give_one_hit_and_two_crossings(tracers, built):
    scene = assemble([built.blas(TRIANGLE)], ["t"], [BvhInstance(0), BvhInstance(0)])
    got = tracers(scene, DOWN)
    assert got.t[0] == 1 and got.instance[0] in (0, 1)
    assert tracers(scene, DOWN, count_all=True).crossings[0] == 2


def test_counters_of_two_levels(built):
    scene = assemble(
        [built.blas(TRIANGLE)], ["t"], [BvhInstance(0, affine(shift=(0, 0, -i))) for i in range(2)]
    )
    c = oracle.trace(scene.words, DOWN, count_all=True).counters
    # TLAS root (2 children), then each instance's root (1 child) and its block.
    assert (c.nodes[0], c.box_tests[0], c.box_hits[0]) == (3, 4, 4)
    assert (c.instance_hits[0], c.triangle_tests[0], c.triangle_hits[0]) == (2, 2, 2)
    assert c.stack_max[0] == 1


# ---- pointers ---------------------------------------------------------------------------------


def instance_word(words):
    """Word index of the first instance node under the TLAS root."""
    pointer = int(words[32 + np.flatnonzero((words[32:36] & 7) == layout.NODE_INSTANCE)[0]])
    return (pointer & ~7) << 1


def test_a_64_bit_root_pointer_is_not_narrowed(built):
    words = built.scene(TRIANGLE).words.copy()
    assert oracle.trace(words, DOWN).hit[0]
    words[instance_word(words) + 1] = 1  # bit 32: 32 GiB further; the low word still looks right
    with pytest.raises(UserError, match="0x00000001"):
        oracle.trace(words, DOWN)


def test_root_pointer_of_another_blas_is_refused(built):
    scene = assemble([built.blas(TRIANGLE)] * 2, ["a", "b"], [BvhInstance(1)])
    words = scene.words.copy()
    words[instance_word(words)] = int(scene.blas_bases[0]) + 128 >> 3 | 5
    with pytest.raises(UserError, match="names no node"):
        oracle.trace(words, DOWN)


def test_pointers_above_2_to_24_keep_every_bit(hand):
    # A pointer read as a number in float32 has 24 bits: 0x1000009 would become 0x1000008, whose
    # type is 0, and the second triangle of the pair would be lost.
    pointer = 0x1000008 | 1
    assert int(np.float32(pointer)) != pointer
    words = np.zeros(
        ((pointer & ~7) << 1) + 16, np.uint32
    )  # pages that nobody touches stay virtual
    root = np.frombuffer(hand.box_node([(pointer, (-1, -1, 0), (1, 1, 0))]), np.uint32)
    words[32:64] = root
    corners = np.array([(-1, 0, 0), (0, -1, 0), (0, 1, 0), (1, 0, 0)], np.float32)
    words[-16:-4] = corners.view(np.uint32).ravel()
    words[-4:] = 0x01000000, 7, 8, 0x0909
    got = oracle.trace(words, make_rays([[0.25, 0.1, 1]], [0, 0, -1]))
    assert got.primitive[0] == 8


def test_an_invalid_pointer_compared_as_float_would_look_valid(hand):
    # 0xffffffff is a NaN: `pointer != INVALID` on floats holds for it, and pointers below 2^23
    # are denormals that a GPU may flush to one zero.
    invalid = np.uint32(layout.INVALID_POINTER).view(np.float32)
    assert invalid != invalid
    # GPURT marks empty slots with zero bounds, which a ray from the origin does hit.
    node = np.frombuffer(bytes(128) + hand.box_node([]), np.uint32).copy()
    node[36:60] = 0
    got = oracle.trace(node, make_rays([[0, 0, 0]], [0.3, 0.5, 1]))
    assert got.missed[0] and got.counters.box_tests[0] == 0
