"""Rays that tempt a tracer into a wrong answer: parallel to axes, on planes, inside, at corners,
any length, and triangles that overlap or are thin. All through the real builder's bytes."""

import numpy as np
import pytest

from bvh.brute_force import closest
from bvh.rays import make_rays


def box(low=(0, 0, 0), high=(1, 1, 1)):
    """Twelve triangles of a closed box, wound outwards."""
    corner = np.array([[(low, high)[i >> k & 1][k] for k in range(3)] for i in range(8)], float)
    quads = ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))
    return np.array([corner[list(t)] for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


GRID = np.concatenate(
    [box((x, y, z), (x + 1, y + 1, z + 1)) for x in (0, 2, 4) for y in (0, 2, 4) for z in (0, 2, 4)]
)
SIGNED_AXES = [s * np.eye(3)[a] for a in range(3) for s in (1, -1)]


def aimed(rng, count, t_min=0.0, t_max=np.inf):
    """Rays from around the origin into the middle of a soup of standard normal size."""
    origin = rng.normal(size=(count, 3)) * 3
    return make_rays(origin, rng.normal(size=(count, 3)) * 0.7 - origin, t_min, t_max)


@pytest.mark.parametrize("nodes", ["fp16", "fp32"])
def test_axis_parallel_rays_equal_brute_force(tracers, built, rng, nodes):
    scene = built.scene(GRID, nodes=nodes)
    for direction in SIGNED_AXES:
        origin = rng.uniform(-1, 6, (400, 3))
        rays = make_rays(origin, direction)
        got, want = tracers(scene, rays, count_all=True), closest(GRID, rays)
        assert (got.crossings == want.crossings).all()
        assert (got.t[got.hit] == pytest.approx(want.t[got.hit], rel=1e-5, abs=1e-6)) is True
        minus = rays.copy()
        minus["direction"][minus["direction"] == 0] = -0.0
        assert (tracers(scene, minus).t == tracers(scene, rays).t).all()


def test_axis_parallel_rays_in_the_planes_of_boxes(tracers, built):
    # Rays that lie exactly in a face's plane, along an edge line, or graze a corner: a zero
    # component times an infinite reciprocal would be NaN there. The face at x = 0 is crossed at
    # right angles by rays in the planes y = 0, y = 1 and z = 0, z = 1: one owner among the
    # triangles that meet there, so at most one crossing a face.
    scene = built.scene(box())
    for y in (0.0, 0.25, 0.5, 1.0):
        for z in (0.0, 0.5, 0.75, 1.0):
            got = tracers(scene, make_rays([[-1, y, z]], [1, 0, 0]), count_all=True)
            assert got.crossings[0] in (0, 2)
            if 0 < y < 1 and 0 < z < 1:
                assert got.crossings[0] == 2 and got.t[0] == 1


def test_shared_planes_of_touching_boxes_have_one_owner(tracers, built):
    # Four quads that meet at (1, 1) tile [0, 2]^2 in the plane x = 0: a ray through the seams or
    # the common corner crosses exactly one of them.
    quads = []
    for y in (0, 1):
        for z in (0, 1):
            a, b, c, d = (0, y, z), (0, y + 1, z), (0, y + 1, z + 1), (0, y, z + 1)
            quads += [(a, b, c), (a, c, d)]
    scene = built.scene(np.array(quads, float))
    points = [(1, 1), (1, 0.5), (0.5, 1), (1, 1.5), (1.5, 1), (0.5, 0.5), (1.25, 1.25)]
    for sign in (1, -1):
        rays = make_rays([[-sign, y, z] for y, z in points], [sign, 0, 0])
        assert tracers(scene, rays, count_all=True).crossings.tolist() == [1] * len(points)
        assert tracers(scene, rays).t.tolist() == [1.0] * len(points)


def test_rays_from_inside_a_box_leave_it_once(tracers, built, rng):
    scene = built.scene(box())
    rays = make_rays(rng.uniform(0.01, 0.99, (500, 3)), rng.normal(size=(500, 3)))
    got = tracers(scene, rays, count_all=True)
    assert (got.crossings == 1).all()
    point = rays["origin"] + got.t[:, None] * rays["direction"].astype(float)
    assert np.abs(np.abs(point - 0.5).max(1) - 0.5).max() < 1e-6


def test_rays_from_a_surface_do_not_hit_it(tracers, built, rng):
    # The interval is open: a crossing at t = 0 with t_min = 0 does not count. t is exact where
    # the dominant axis is the face's normal; elsewhere it is off by rounding, which is what
    # offset origins and t_min are for.
    origin = np.column_stack([rng.uniform(0.1, 0.9, (200, 2)), np.ones(200)])
    steep = np.column_stack([rng.uniform(-0.9, 0.9, (200, 2)), np.ones(200)])
    scene = built.scene(box())
    outward = make_rays(origin, steep)
    assert not tracers(scene, outward).hit.any()
    assert not tracers(scene, outward, any_hit=True).hit.any()
    inward = make_rays(origin, -steep)
    got = tracers(scene, inward, count_all=True)
    assert (got.crossings == 1).all() and (got.t > 1e-3).all()
    flat = make_rays(origin, steep * (5, 5, 0.1))
    assert (tracers(scene, flat).t[tracers(scene, flat).hit] < 1e-6).all()
    flat["t_min"] = 1e-6
    assert not tracers(scene, flat).hit.any()


def test_rays_from_a_corner(tracers, built):
    scene = built.scene(box())
    away = make_rays([[0, 0, 0]] * 4, [(-1, -1, -1), (-1, -2, -3), (-1, 0, 0), (-1, 1, 0)])
    assert not tracers(scene, away).hit.any()
    inside = make_rays([[0, 0, 0]] * 3, [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
    got = tracers(scene, inside, count_all=True)
    assert got.crossings.tolist() == [1] * 3
    assert got.t.tolist() == pytest.approx([1 / 3] * 3)
    # The opposite corner, where six triangles meet: exactly one of them.
    assert tracers(scene, make_rays([[0, 0, 0]], [[1, 1, 1]]), count_all=True).crossings[0] == 1


@pytest.mark.parametrize("power", [-20, -3, 3, 20])
def test_scaling_the_direction_scales_t_and_nothing_else(tracers, built, rng, power):
    soup = rng.normal(size=(200, 3, 3))
    scene = built.scene(soup)
    rays = aimed(rng, 800, 0.125, 1.5)
    longer = rays.copy()
    factor = np.float32(2.0**power)  # a power of two, so that float32 scales without rounding
    longer["direction"] *= factor
    longer["t_min"] /= factor
    longer["t_max"] /= factor
    a, b = tracers(scene, rays), tracers(scene, longer)
    assert 300 < a.hit.sum() < 800
    for name in ("primitive", "u", "v"):
        assert (getattr(a, name) == getattr(b, name)).all()
    assert (a.t[a.hit] == b.t[b.hit] * factor).all()


def test_interval_ends_are_open_and_hold_for_far_hits(tracers, built):
    scene = built.scene(box((0, 0, 0), (1, 1, 1)))
    cases = [  # t_min, t_max -> nearest t of a ray that crosses at 1 and 2
        (0, np.inf, 1),
        (1, np.inf, 2),
        (0, 1, np.inf),
        (0.5, 1.5, 1),
        (1.5, 1.75, np.inf),
        (1.5, 2, np.inf),
        (1.5, 2.5, 2),
        (2, 9, np.inf),
    ]
    rays = make_rays(
        [[-1, 0.4, 0.3]] * len(cases), [1, 0, 0], [c[0] for c in cases], [c[1] for c in cases]
    )
    assert tracers(scene, rays).t.tolist() == [c[2] for c in cases]
    assert tracers(scene, rays, any_hit=True).hit.tolist() == [c[2] < np.inf for c in cases]


def test_both_windings_are_hit(tracers, built, rng):
    soup = rng.normal(size=(100, 3, 3))
    rays = aimed(rng, 500)
    a, b = tracers(built.scene(soup), rays), tracers(built.scene(soup[:, ::-1]), rays)
    assert a.hit.sum() > 100 and (a.primitive == b.primitive).all()
    # Vertex 1 is the same in both, vertex 2 of one is vertex 0 of the other.
    assert a.u == pytest.approx(b.u, abs=1e-3)
    assert a.v[a.hit] == pytest.approx((1 - b.u - b.v)[a.hit], abs=1e-3)


def test_equal_distance_overlaps(tracers, built):
    # Three coplanar copies and one rotated copy of the same triangle.
    one = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], float)
    scene = built.scene(np.array([one, one, np.roll(one, 1, 0), one[::-1]]))
    rays = make_rays([[0.25, 0.25, 1], [0.5, 0.125, -1]], [[0, 0, -1], [0, 0, 1]])
    got = tracers(scene, rays)
    assert got.t.tolist() == [1, 1] and (got.primitive < 4).all()
    assert tracers(scene, rays, count_all=True).crossings.tolist() == [4, 4]


def test_thin_triangles_equal_brute_force_up_to_their_edges(tracers, built, rng):
    # Slivers a thousand to a million times longer than wide, through all directions.
    a = rng.uniform(-1, 1, (300, 3))
    along, across = rng.normal(size=(2, 300, 3))
    width = 10.0 ** rng.uniform(-6, -3, (300, 1))
    soup = np.stack([a, a + along, a + along * 0.5 + across * width], 1).astype(np.float32)
    weights = rng.dirichlet((1, 1, 1), 3000)
    target = (weights[:, :, None] * soup[np.arange(3000) % 300]).sum(1)
    origin = target + rng.normal(size=(3000, 3))
    rays = make_rays(origin, target - origin)
    got, want = tracers(built.scene(soup), rays), closest(soup, rays)
    same = (got.hit == np.isfinite(want.t)) & (
        ~got.hit | (got.primitive.astype(np.int64) == want.triangle)
    )
    # float32 targets miss the thinnest slivers by rounding; both must then agree on what is hit,
    # but for rays within float32's resolution of an edge.
    wide = np.repeat(width[np.arange(3000) % 300, 0] > 1e-5, 1)
    assert got.hit.mean() > 0.5
    assert same[wide].mean() > 0.99 and same.mean() > 0.95


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1e2, 1e4])
def test_scale_does_not_change_what_is_hit(tracers, built, rng, scale):
    soup = rng.normal(size=(150, 3, 3)).astype(np.float32)
    factor = np.float32(2.0 ** np.round(np.log2(scale)))
    rays = aimed(rng, 500)
    bigger = rays.copy()
    bigger["origin"] *= factor
    a = tracers(built.scene(soup, nodes="fp32"), rays)
    b = tracers(built.scene(soup * factor, nodes="auto"), bigger)
    assert a.hit.sum() > 150 and (a.primitive == b.primitive).all()
    assert (a.t[a.hit] * factor == b.t[b.hit]).all()


def test_far_origins_keep_hitting_a_small_mesh(tracers, built, rng):
    # From 1e4 units away float32 can name points 1e-3 apart: rays at the middle of a unit box's
    # faces still hit, and t is right to float32.
    scene = built.scene(box())
    origin = rng.normal(size=(500, 3))
    origin *= 1e4 / np.linalg.norm(origin, axis=1, keepdims=True)
    rays = make_rays(origin, 0.5 - origin)
    got, want = tracers(scene, rays), closest(box(), rays)
    assert got.hit.all()
    assert got.t == pytest.approx(want.t, rel=1e-5)
