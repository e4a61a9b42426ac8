"""Rays against triangles: hand-solved, who owns an edge, agreement with the exact answer."""

import numpy as np
import pytest

from bvh.brute_force import closest
from bvh.ray_triangle import AXIS_ORDER, dominant_axis, intersect_triangles
from bvh.rays import make_rays

TRIANGLE = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]], np.float32)


def crossing(corners, origin, direction):
    """(t, weights, front) of one ray with one triangle, or None."""
    d = np.array(direction, np.float32)[:, None]
    order = AXIS_ORDER[dominant_axis(d)[0]]
    found = intersect_triangles(
        np.array(corners, np.float32)[:, order, None],
        np.array(origin, np.float32)[order, None],
        d[order],
    )
    if not found.lanes.size:
        return None
    return float(found.t[0]), found.weights[:, 0].tolist(), bool(found.front[0])


def test_hand_solved_triangle():
    assert crossing(TRIANGLE[0], (0.25, 0.25, 1), (0, 0, -1)) == (1, [0.5, 0.25, 0.25], True)
    assert crossing(TRIANGLE[0], (0.75, 0.75, 1), (0, 0, -1)) is None


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("sign", [1, -1])
def test_facing_is_the_winding_seen_from_the_origin_on_every_axis(axis, sign):
    order = [(axis + 1) % 3, (axis + 2) % 3, axis]
    corners = np.zeros((3, 3))
    corners[:, order] = TRIANGLE[0]
    origin, direction = np.zeros(3), np.zeros(3)
    origin[order], direction[order] = (0.25, 0.25, sign), (0, 0, -sign)
    assert crossing(corners, origin, direction) == (1, [0.5, 0.25, 0.25], sign > 0)


def test_known_words_of_the_shared_edge_rule():
    # A horizontal bottom edge belongs to the triangle below it, the left edge to its triangle.
    fan = [(-1, -1, 2), (1, -1, 2), (0, 1, 2)]
    assert crossing(fan, (0, -1, 0), (0, 0, 1)) is None
    assert crossing(fan, (0, 0, 0), (0, 0, 1))[0] == 2
    below = [(-1, -1, 2), (0, -3, 2), (1, -1, 2)]
    assert crossing(below, (0, -1, 0), (0, 0, 1))[0] == 2


def test_shared_edges_and_vertices_of_a_fan_have_one_owner():
    # Small integers: every product is exact, so the rays really lie on edges and vertices.
    rim = np.array([(4, 0), (3, 3), (0, 4), (-3, 3), (-4, 0), (-3, -3), (0, -4), (3, -3)])
    for axis in range(3):
        order = [(axis + 1) % 3, (axis + 2) % 3, axis]
        for step in (1, -1):
            targets = [np.zeros(2), *(rim / 2), *(rim / 4)]
            counts = np.zeros(len(targets), int)
            for k in range(8):
                corners = np.zeros((3, 3))
                flat = np.array([(0, 0), rim[k], rim[(k + 1) % 8]])
                flat = flat[::-1] if k % 3 == 0 else flat  # the owner must not depend on winding
                corners[:, order] = np.column_stack([flat, np.full(3, 2)])
                for i, target in enumerate(targets):
                    origin, direction = np.zeros(3), np.zeros(3)
                    origin[order[:2]], origin[order[2]] = target, 2 - step
                    direction[order[2]] = step
                    counts[i] += crossing(corners, origin, direction) is not None
            assert counts.tolist() == [1] * len(targets), (axis, step)


def helper_verdict(corners, origin, direction):
    """Hit or miss by the emulator helper's steps (contract ledger section 8, 1 to 7), in integers:
    small integer input, so that the emitter's float32 is exact."""
    size = [abs(c) for c in direction]
    axis = 1 if size[0] < size[1] else 0
    axis = 2 if size[2] > size[axis] else axis
    order = {0: (1, 2, 0), 1: (2, 0, 1), 2: (0, 1, 2)}[axis]
    dx, dy, dz = (direction[i] for i in order)
    points, depth = [], []
    for vertex in corners:
        rx, ry, rz = (vertex[i] - origin[i] for i in order)
        points.append((rx * dz - dx * rz, ry * dz - dy * rz))
        depth.append(rz)
    pairs = [(1, 2), (2, 0), (0, 1)]
    edges = [points[s][0] * points[f][1] - points[s][1] * points[f][0] for f, s in pairs]
    denominator = sum(edges) * dz
    if (min(edges) < 0 < max(edges)) or denominator == 0:
        return False
    if sum(e * z for e, z in zip(edges, depth, strict=True)) * denominator < 0:
        return False
    for i, (first, second) in enumerate(pairs):
        if edges[i] == 0:
            a, b = points[first][1], points[second][1]
            if a == b == 0:
                excluded = points[i][1] > 0
            else:
                below = a < 0 or (a == 0 and b > 0)
                excluded = below != (denominator > 0)
            if excluded:
                return False
    return True


def test_verdicts_on_exact_edges_and_vertices_are_the_helpers(rng):
    on_edge = hits = 0
    for _ in range(4000):
        corners = rng.integers(-2, 3, (3, 3))
        target = corners[0] if rng.random() < 0.3 else corners[0] + corners[1]
        direction = rng.integers(-3, 4, 3)
        if not direction.any():
            continue
        # Twice the size, so that the middle of an edge is an integer too.
        corners, scale = 2 * corners, 2 if target is corners[0] else 1
        origin = scale * target - 2 * direction
        want = helper_verdict(corners.tolist(), origin.tolist(), direction.tolist())
        got = crossing(corners, origin, direction)
        ahead = got is not None and got[0] >= 0
        assert ahead == want, (corners.tolist(), origin.tolist(), direction.tolist())
        on_edge += 1
        hits += want
    assert 0.2 < hits / on_edge < 0.8


def test_dominant_axis_prefers_x_then_y():
    rows = [
        ((1, 0, 0), 0), ((0, -1, 0), 1), ((0, 0, 1), 2), ((1, 1, 1), 0), ((1, -1, 0), 0),
        ((0, 1, 1), 1), ((1, 0, 1), 0), ((-3, 2, 1), 0), ((1, 3, -2), 1), ((2, 3, 4), 2),
        ((1, 3, 2), 1), ((3, 1, 2), 0),
    ]  # fmt: skip
    directions = np.array([d for d, _ in rows], np.float32).T
    assert dominant_axis(directions).tolist() == [axis for _, axis in rows]


def test_edge_value_that_float32_rounds_to_zero_keeps_its_side():
    # The line from (-4096, -4097) to (4097, 4098) passes the axis at about 1.2e-4: the float32
    # products of the edge value are both -16785408, the exact ones differ by one.
    low, high = (-4096.0, -4097.0, 1.0), (4097.0, 4098.0, 1.0)
    assert np.float32(4096) * np.float32(4098) == np.float32(4097) * np.float32(4097)
    above = [low, high, (-9000.0, 9000.0, 1.0)]
    below = [high, low, (9000.0, -9000.0, 1.0)]
    for triangle in (above, below):
        for corners in (triangle, triangle[::-1]):
            exact = closest([corners], make_rays([[0, 0, 0]], [0, 0, 1])).triangle[0] == 0
            assert (crossing(corners, (0, 0, 0), (0, 0, 1)) is not None) == exact


def test_triangle_seen_edge_on_is_not_hit():
    assert crossing(TRIANGLE[0], (-1, 0.25, 0), (1, 0, 0)) is None


def test_thin_triangle_is_hit_where_float64_says():
    corners = np.array([(0, 0, 0), (100, 0, 0), (100, 1e-4, 0)], np.float32)
    rays = make_rays(
        np.column_stack([np.full(400, 60), np.linspace(-2e-5, 1e-4, 400), np.ones(400)]),
        [0, 0, -1],
    )
    mine = [crossing(corners, r["origin"], r["direction"]) is not None for r in rays]
    exact = np.isfinite(closest(corners[None], rays).t)
    assert 150 < exact.sum() < 300
    assert np.sum(mine != exact) <= 1
