"""The oracle on hand-encoded guest bytes: fixtures solved by hand, counters, limits, damage."""

import struct

import numpy as np
import pytest

from bvh import oracle
from bvh.brute_force import closest
from bvh.rays import MISS_ID, RAY, RayFlags, make_rays, valid_rays
from engine.gpu.errors import UserError

TRIANGLE = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]], np.float32)


def test_ray_record_is_32_bytes_in_the_documented_order():
    assert RAY.itemsize == 32
    raw = make_rays([[1, 2, 3]], [[4, 5, 6]], 7, 8).tobytes()
    assert struct.unpack("<8f", raw) == (1, 2, 3, 7, 4, 5, 6, 8)


def test_blas_alone_reports_original_barycentrics_for_every_rotation(hand):
    rays = make_rays([[0.125, 0.25, 1]], [0, 0, -1])
    for turn, flag in enumerate((0x9, 0x2, 0x4)):
        # Nibble k: original vertex a sits in slot k, b and c follow.
        slots = [TRIANGLE[0][(s - turn) % 3] for s in range(3)]
        words = np.frombuffer(
            bytes(128)
            + hand.box_node([(256 >> 3, (0, 0, 0), (1, 1, 0))])
            + hand.triangle_block(slots, 5, 42, True, flag),
            np.uint32,
        )
        hit = oracle.trace(words, rays)
        assert (hit.t[0], hit.u[0], hit.v[0]) == (1, 0.125, 0.25), turn
        assert (hit.object[0], hit.primitive[0]) == (5, 42)
        assert hit.instance[0] == MISS_ID and hit.hit[0]
        assert hit.pointer[0] == 256 >> 3


def fan_block():
    """V0..V4 as a closed fan of four triangles about V2 = (0, 0, 0), plane z = 0."""
    v = [(-1, -1, 0), (1, -1, 0), (0, 0, 0), (1, 1, 0), (-1, 1, 0)]
    return struct.pack("<15f", *np.ravel(v)) + struct.pack("<I", 0x09090909)


@pytest.mark.parametrize("kind", range(4))
def test_block_pointer_of_type_k_visits_types_k_to_0(hand, kind):
    words = np.frombuffer(
        bytes(128) + hand.box_node([(256 >> 3 | kind, (-1, -1, 0), (1, 1, 0))]) + fan_block(),
        np.uint32,
    )
    # Inside types 0 (bottom), 1 (right), 2 (top), 3 (left); off the diagonals.
    rays = make_rays([[0.1, -0.6, 1], [0.6, 0.1, 1], [0.1, 0.6, 1], [-0.6, 0.1, 1]], [0, 0, -1])
    hit = oracle.trace(words, rays)
    assert hit.hit.tolist() == [i <= kind for i in range(4)]
    assert hit.counters.triangle_tests.tolist() == [kind + 1] * 4
    if kind == 3:
        assert (hit.pointer & 7).tolist() == [0, 1, 2, 3]
        assert hit.primitive.tolist()[2:] == [2, 3]


def test_pair_block_reads_each_primitive_id(hand):
    v = [(-1, 0, 0), (0, -1, 0), (0, 1, 0), (1, 0, 0)]
    block = struct.pack("<12f", *np.ravel(v)) + struct.pack("<4I", 0x01000003, 7, 8, 0x0909)
    words = np.frombuffer(
        bytes(128) + hand.box_node([(256 >> 3 | 1, (-1, -1, 0), (1, 1, 0))]) + block, np.uint32
    )
    hit = oracle.trace(words, make_rays([[-0.25, 0.1, 1], [0.25, 0.1, 1]], [0, 0, -1]))
    assert hit.primitive.tolist() == [7, 8] and hit.object.tolist() == [3, 3]
    # Type 1 is V1, V3, V2: u belongs to V3, v to V2.
    assert hit.u[1] == pytest.approx(0.25) and hit.v[1] == pytest.approx(0.425)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("any_hit", [False, True])
def test_random_soup_equals_brute_force(hand, tracers, rng, half, any_hit):
    soup = rng.normal(size=(400, 3, 3)) * 0.5 + rng.normal(size=(400, 1, 3)) * 3
    words = hand.blas(soup, half=half)
    rays = make_rays(rng.normal(size=(3000, 3)) * 4, rng.normal(size=(3000, 3)), 0, 20)
    got = tracers(words, rays, any_hit=any_hit)
    want = closest(soup.astype(np.float32), rays)
    assert 500 < got.hit.sum() < 2900
    assert (got.hit == np.isfinite(want.t)).all()
    if not any_hit:
        assert (got.primitive.astype(np.int64)[got.hit] == want.triangle[got.hit]).all()
        np.testing.assert_allclose(got.t[got.hit], want.t[got.hit], rtol=2e-5)
        np.testing.assert_allclose(got.u[got.hit], want.u[got.hit], atol=1e-3)
        np.testing.assert_allclose(got.v[got.hit], want.v[got.hit], atol=1e-3)


def test_count_all_counts_every_crossing_and_keeps_the_nearest(hand, tracers, rng):
    soup = rng.normal(size=(300, 3, 3))
    words = hand.blas(soup)
    rays = make_rays(rng.normal(size=(2000, 3)) * 3, rng.normal(size=(2000, 3)), 0.5, 9)
    got = tracers(words, rays, count_all=True)
    want = closest(soup.astype(np.float32), rays)
    assert want.crossings.max() > 5
    assert (got.crossings == want.crossings).all()
    plain = tracers(words, rays)
    assert (got.t == plain.t).all() and (got.primitive == plain.primitive).all()


@pytest.mark.parametrize("power", [-100, -60, 40, 100])
def test_any_length_of_direction_gives_the_same_hits(hand, rng, power):
    # Three direction components multiply in the projected test: 2^40 cubed would overflow.
    soup = rng.normal(size=(200, 3, 3))
    words = hand.blas(soup)
    origin = rng.normal(size=(500, 3)) * 3
    rays = make_rays(origin, rng.normal(size=(500, 3)) - origin)
    longer = rays.copy()
    longer["direction"] *= np.float32(2.0**power)
    a, b = oracle.trace(words, rays), oracle.trace(words, longer)
    assert a.hit.sum() > 200
    for name in ("hit", "primitive", "u", "v"):
        assert (getattr(a, name) == getattr(b, name)).all()
    assert (a.t[a.hit] == b.t[b.hit] * np.float32(2.0**power)).all()


def test_counters_of_a_tree_small_enough_to_count_by_hand(hand):
    # Two triangles at z = 0 and z = -1 and one far aside, all under the root.
    soup = np.concatenate([TRIANGLE, TRIANGLE - [0, 0, 1], TRIANGLE + [50, 0, 0]])
    words = hand.blas(soup)
    rays = make_rays([[0.2, 0.2, 1], [0.9, 0.9, 1], [0, 0, 9]], [[0, 0, -1]] * 2 + [[0, 0, 1]])
    c = oracle.trace(words, rays).counters
    assert c.nodes.tolist() == [1, 1, 1]
    assert c.box_tests.tolist() == [3, 3, 3]  # the empty slot is not a test
    assert c.box_hits.tolist() == [2, 2, 0]
    # Without a cull at pop the second block is tested too, and missed by t.
    assert c.triangle_tests.tolist() == [2, 2, 0]
    assert c.triangle_hits.tolist() == [1, 0, 0]
    assert c.stack_max.tolist() == [1, 1, 0]
    once = oracle.trace(words, rays, any_hit=True).counters
    assert once.triangle_tests.tolist() == [1, 2, 0]


def test_equal_distance_keeps_the_first_tested_and_one_hit(hand, tracers):
    words = hand.blas(np.concatenate([TRIANGLE, TRIANGLE]))
    got = tracers(words, make_rays([[0.2, 0.2, 1]], [0, 0, -1]))
    assert got.t[0] == 1 and got.primitive[0] in (0, 1)
    assert oracle.trace(words, make_rays([[0.2, 0.2, 1]], [0, 0, -1])).counters.triangle_hits == 1


def test_alpha_test_is_asked_for_non_opaque_candidates_only(hand):
    soup = np.concatenate([TRIANGLE, TRIANGLE - [0, 0, 1]])
    rays = make_rays([[0.2, 0.3, 1], [0.6, 0.1, 1]], [0, 0, -1])
    seen = []

    def accept(objects, primitive, u, v):
        seen.extend(zip(objects.tolist(), primitive.tolist(), strict=True))
        return (primitive == 1) | (u > 0.5)

    clear = oracle.trace(hand.blas(soup, opaque=False), rays, accept=accept)
    assert clear.primitive.tolist() == [1, 0]
    assert clear.counters.any_hits.tolist() == [2, 1]
    assert set(seen) == {(0, 0), (0, 1)}
    seen.clear()
    solid = oracle.trace(hand.blas(soup, opaque=True), rays, accept=accept)
    assert solid.primitive.tolist() == [0, 0] and not seen
    assert oracle.trace(hand.blas(soup, opaque=False), rays).primitive.tolist() == [0, 0]
    forced = oracle.trace(hand.blas(soup, opaque=False), rays, accept=accept, flags=RayFlags.OPAQUE)
    assert forced.primitive.tolist() == [0, 0] and not seen


def test_stack_overflow_is_counted_and_never_a_certain_miss(hand, rng):
    soup = rng.normal(size=(300, 3, 3))
    words = hand.blas(soup)
    rays = make_rays(rng.normal(size=(500, 3)) * 3, rng.normal(size=(500, 3)))
    full = oracle.trace(words, rays)
    assert not full.overflows.any()
    small = oracle.trace(words, rays, stack_limit=2)
    assert small.overflows.any()
    assert small.counters.stack_max.max() == 2
    lost = full.hit & ~small.hit
    assert lost.any() and not small.missed[lost].any()


def test_step_limit_is_counted_and_never_a_certain_miss(hand, rng):
    soup = rng.normal(size=(300, 3, 3))
    words = hand.blas(soup)
    rays = make_rays(rng.normal(size=(500, 3)) * 3, rng.normal(size=(500, 3)))
    full, cut = oracle.trace(words, rays), oracle.trace(words, rays, step_limit=4)
    lost = full.hit & ~cut.hit
    assert lost.any() and (cut.overflows[lost] == 1).all() and not cut.missed[lost].any()


def test_a_loop_in_the_bytes_ends_at_the_step_limit(hand):
    words = np.frombuffer(bytes(128) + hand.box_node([(0x15, (-1, -1, -1), (1, 1, 1))]), np.uint32)
    got = oracle.trace(words, make_rays([[0, 0, 0]], [0, 0, 1]), step_limit=1000)
    assert got.overflows.tolist() == [1] and not got.missed.any()


def test_pointer_beyond_the_buffer_is_refused_by_name(hand):
    words = np.frombuffer(
        bytes(128) + hand.box_node([(0x1000, (-1, -1, -1), (1, 1, 1))]), np.uint32
    )
    with pytest.raises(UserError, match=r"node pointer 0x00001000"):
        oracle.trace(words, make_rays([[0, 0, 0]], [0, 0, 1]))


def test_invalid_rays_are_refused_and_counted(hand):
    rays = make_rays([[0.2, 0.2, 1]] * 9, [0, 0, -1])
    rays["origin"][1, 0] = np.nan
    rays["direction"][2, 1] = np.inf
    rays["direction"][3] = 0
    rays["t_min"][4] = -1
    rays["t_min"][5], rays["t_max"][5] = 3, 2
    rays["t_max"][6] = np.nan
    rays["direction"][7] = 1e-40
    assert valid_rays(rays).tolist() == [True] + [False] * 7 + [True]
    got = oracle.trace(hand.blas(TRIANGLE), rays)
    assert got.hit.tolist() == [True] + [False] * 7 + [True]
    assert got.invalid.tolist() == [False] + [True] * 7 + [False]
    assert not got.counters.nodes[1:8].any()


def test_the_callers_rays_are_left_alone(hand):
    rays = make_rays([[0.2, 0.2, 1]], [0, 0, -1])  # one ray: its columns count as contiguous
    before = rays.copy()
    assert oracle.trace(hand.blas(TRIANGLE), rays).hit[0]
    assert (rays == before).all()


def test_empty_tree_and_no_rays(hand):
    words = np.frombuffer(bytes(128) + hand.box_node([]), np.uint32)
    got = oracle.trace(words, make_rays([[0, 0, 0]], [0, 0, 1]))
    assert got.missed.all() and got.counters.box_tests[0] == 0 and got.counters.nodes[0] == 1
    assert len(oracle.trace(words, make_rays([[0, 0, 0]], [0, 0, 1])[:0]).t) == 0


def test_chunks_and_workers_do_not_change_the_answer(hand, rng, monkeypatch):
    words = hand.blas(rng.normal(size=(200, 3, 3)))
    rays = make_rays(rng.normal(size=(1000, 3)) * 3, rng.normal(size=(1000, 3)))
    whole = oracle.trace(words, rays, workers=1)
    monkeypatch.setattr(oracle, "CHUNK", 77)
    parts = oracle.trace(words, rays, workers=3)
    for name in ("t", "u", "v", "primitive", "pointer"):
        assert (getattr(whole, name) == getattr(parts, name)).all(), name
    for name in oracle.Counters.__dataclass_fields__:
        assert (getattr(whole.counters, name) == getattr(parts.counters, name)).all(), name
