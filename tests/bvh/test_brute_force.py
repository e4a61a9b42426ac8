"""The brute force itself, against hand-solved cases and a scalar float64 solver."""

import numpy as np
import pytest

from bvh.brute_force import closest, closest_watertight
from bvh.rays import make_rays

TRIANGLE = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]], float)


def test_hand_solved_triangle():
    hits = closest(TRIANGLE, make_rays([[0.25, 0.25, 1], [0.75, 0.75, 1]], [0, 0, -1]))
    assert hits.t.tolist() == [1.0, np.inf]
    assert (hits.u[0], hits.v[0], hits.triangle[0]) == (0.25, 0.25, 0)
    assert hits.triangle[1] == -1
    assert hits.crossings.tolist() == [1, 0]


def test_t_is_in_units_of_the_direction_and_the_interval_is_open():
    rays = make_rays([[0.2, 0.1, 4]] * 4, [0, 0, -2], [0, 2, 0, 1.9], [9, 9, 2, 2.1])
    assert closest(TRIANGLE, rays).t.tolist() == [2, np.inf, np.inf, 2]


def test_against_a_linear_solve_per_pair(rng):
    triangles = rng.normal(size=(23, 3, 3)) * 2 + 3
    rays = make_rays(rng.normal(size=(67, 3)), rng.normal(size=(67, 3)) + 1)
    hits = closest(triangles, rays)
    assert 10 < np.isfinite(hits.t).sum() < 67
    for i, ray in enumerate(rays):
        best, count = (np.inf, -1), 0
        for k, (a, b, c) in enumerate(triangles):
            d = ray["direction"].astype(float)
            t, u, v = np.linalg.solve(np.stack([-d, b - a, c - a], 1), ray["origin"] - a)
            if u >= 0 and v >= 0 and u + v <= 1 and t > 0:
                count += 1
                best = min(best, (t, k))
        assert hits.triangle[i] == best[1]
        assert hits.t[i] == pytest.approx(best[0], rel=1e-9)
        assert hits.crossings[i] == count


def test_chunks_do_not_change_the_answer(rng, monkeypatch):
    triangles = rng.normal(size=(300, 3, 3))
    rays = make_rays(rng.normal(size=(100, 3)) * 3, rng.normal(size=(100, 3)))
    whole = closest(triangles, rays)
    monkeypatch.setattr("bvh.brute_force._PAIR_LIMIT", 700)
    parts = closest(triangles, rays)
    assert (whole.triangle == parts.triangle).all()
    assert (whole.crossings == parts.crossings).all()


def test_nothing_to_hit_and_degenerate_triangles():
    rays = make_rays([[0, 0, 1]], [0, 0, -1])
    assert closest(np.empty((0, 3, 3)), rays).triangle.tolist() == [-1]
    assert len(closest(TRIANGLE, rays[:0]).t) == 0
    assert closest([[[0, 0, 0], [1, 1, 0], [2, 2, 0]]], rays).triangle.tolist() == [-1]


def test_the_tracers_own_test_agrees_away_from_edges(rng):
    triangles = rng.normal(size=(41, 3, 3)).astype(np.float32)
    rays = make_rays(rng.normal(size=(300, 3)) * 3, rng.normal(size=(300, 3)), 0.1, 4)
    hits = closest(triangles, rays)
    t, crossings = closest_watertight(triangles, rays)
    assert 30 < np.isfinite(hits.t).sum() < 300
    assert (np.isfinite(t) == np.isfinite(hits.t)).all() and (crossings == hits.crossings).all()
    assert t == pytest.approx(hits.t, rel=1e-5)
    assert np.isinf(closest_watertight(triangles[:0], rays)[0]).all()
    assert len(closest_watertight(triangles, rays[:0])[0]) == 0


def test_a_shared_edge_has_one_owner():
    square = np.array([[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 0], [0, 1, 0]]])
    rays = make_rays([[x, x, 1] for x in (0.25, 0.5, 0.875)], [0, 0, -1])
    assert closest_watertight(square, rays)[1].tolist() == [1, 1, 1]
