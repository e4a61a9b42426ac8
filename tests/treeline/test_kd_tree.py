"""The KD-tree finds what brute force finds, and its references cover its triangles."""

from typing import Any

import numpy as np
import pytest

from bvh.ray_triangle import AXIS_ORDER, dominant_axis, intersect_triangles
from bvh.rays import make_rays
from bvh.triangles import triangle_bounds
from treeline.kd_tree.build import LEAF, build
from treeline.kd_tree.trace import trace


def _soup(rng: Any, count: int) -> np.ndarray:
    size = 10.0 ** rng.uniform(-2, 0, (count, 1, 1))
    return (rng.random((count, 1, 3)) * 4 + size * rng.normal(size=(count, 3, 3))).astype(
        np.float32
    )


def _nearest(triangles: Any, rays: Any) -> np.ndarray:
    """Every triangle against every ray."""
    out = np.full(len(rays), np.inf, np.float32)
    order = AXIS_ORDER[dominant_axis(rays["direction"].T)]
    for i, ray in enumerate(rays):
        axes = order[i]
        corners = np.ascontiguousarray(triangles.transpose(1, 2, 0)[:, axes])
        lanes = np.ones((1, len(triangles)), np.float32)
        found = intersect_triangles(
            corners, ray["origin"][axes][:, None] * lanes, ray["direction"][axes][:, None] * lanes
        )
        good = (found.t > ray["t_min"]) & (found.t < ray["t_max"])
        out[i] = found.t[good].min(initial=np.inf)
    return out


def _rays(rng: Any, count: int) -> Any:
    directions = rng.normal(size=(count, 3))
    directions[: count // 4] = np.eye(3)[rng.integers(0, 3, count // 4)]  # along the axes
    return make_rays(rng.random((count, 3)) * 6 - 1, directions, 0.0, 50.0)


@pytest.mark.parametrize("count", [1, 2, 7, 400])
def test_hits_are_those_of_brute_force(rng: Any, count: int) -> None:
    triangles = _soup(rng, count)
    tree = build(triangle_bounds(triangles))
    rays = _rays(rng, 300)
    expected = _nearest(triangles, rays)
    traced = trace(tree, triangles, rays)
    assert (traced.t == expected).all()
    assert count == 1 or np.isfinite(expected).any()
    shadow = trace(tree, triangles, rays, any_hit=True)
    assert (np.isfinite(shadow.t) == np.isfinite(expected)).all()
    assert (shadow.triangle_tests <= traced.triangle_tests).all()


def test_flat_triangles_on_planes_are_found(rng: Any) -> None:
    """A grid of squares whose edges and faces lie exactly where planes are tried."""
    corners = []
    for x in range(8):
        for z in range(8):
            for y in (0, 4, 8):
                a, b, c, d = (x, y, z), (x + 1, y, z), (x, y, z + 1), (x + 1, y, z + 1)
                corners += [(a, b, c), (b, d, c)]
    triangles = np.array(corners, np.float32)
    tree = build(triangle_bounds(triangles))
    origins = np.column_stack([rng.random((200, 1)) * 8, np.full(200, 10.0), rng.random(200) * 8])
    rays = make_rays(origins, [0.0, -1.0, 0.0], 0.0, 100.0)
    assert (trace(tree, triangles, rays).t == 2.0).all()
    rays["origin"][:, 1] = 5
    assert (trace(tree, triangles, rays).t == 1.0).all()


def test_every_triangle_is_in_a_leaf_and_duplicates_are_counted(rng: Any) -> None:
    triangles = _soup(rng, 2000)
    tree = build(triangle_bounds(triangles))
    leaves = tree.axis == LEAF
    assert (np.unique(tree.references) == np.arange(2000)).all()
    assert tree.count[leaves].sum() == len(tree.references) > 2000
    assert (tree.child[~leaves] > np.flatnonzero(~leaves)).all()
    assert tree.bytes == 8 * len(tree.axis) + 4 * len(tree.references)


def test_it_saves_work(rng: Any) -> None:
    triangles = _soup(rng, 3000)
    rays = _rays(rng, 500)
    traced = trace(build(triangle_bounds(triangles)), triangles, rays)
    assert traced.triangle_tests.mean() < 100
    assert (traced.leaves >= 1)[np.isfinite(traced.t)].all()


def test_equal_triangles_end(rng: Any) -> None:
    triangles = np.repeat(_soup(rng, 1), 500, axis=0)
    tree = build(triangle_bounds(triangles))
    middle = triangles[0].mean(axis=0)
    rays = make_rays(middle + [0, 0, 5], [0.0, 0.0, -1.0], 0.0, 100.0)
    assert np.isfinite(trace(tree, triangles, rays).t).all()
