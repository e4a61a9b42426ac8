"""Counted traversal of the KD-tree: front to back along the ray, a stack of far sides.

Plane distances are float64; the triangle test is the oracle's (`bvh.ray_triangle`), so that hits
can be compared. A triangle named by several leaves is tested in each: there is no mailbox.
Source: Havran 2000, "Heuristic ray shooting algorithms", section 4.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.ray_triangle import AXIS_ORDER, dominant_axis, intersect_triangles
from bvh.rays import Rays
from treeline.kd_tree.build import LEAF, KdTree

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

CHUNK = 1 << 15  # rays walked together


@dataclass(frozen=True, slots=True)
class KdTrace:
    """One entry a ray; `t` is infinite for a miss. An any-hit ray's `t` is that of some hit."""

    t: F32
    nodes: I64  # inner nodes visited
    leaves: I64  # leaves visited, empty ones too
    triangle_tests: I64


def trace(tree: KdTree, triangles: F32, rays: Rays, *, any_hit: bool = False) -> KdTrace:
    """Of valid rays through `triangles [n, 3, 3]`, all opaque and two-sided."""
    parts = [
        _Walk(tree, triangles, rays[start : start + CHUNK], any_hit).run()
        for start in range(0, max(len(rays), 1), CHUNK)
    ]
    return KdTrace(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class _Walk:
    def __init__(self, tree: KdTree, triangles: F32, rays: Rays, any_hit: bool) -> None:
        self.tree, self.triangles, self.any_hit = tree, triangles, any_hit
        n = len(rays)
        self.origin, self.direction = rays["origin"], rays["direction"]
        self.t_min = rays["t_min"]
        self.t = rays["t_max"].copy()
        self.found = np.zeros(n, np.bool_)
        self.order = AXIS_ORDER[dominant_axis(self.direction.T)]
        self.nodes, self.leaves, self.tests = np.zeros((3, n), np.int64)
        self.stack_node = np.zeros((n, tree.depth + 1), np.int64)
        self.stack_near, self.stack_far = np.zeros((2, n, tree.depth + 1))
        self.top = np.zeros(n, np.int64)

    def run(self) -> tuple[F32, I64, I64, I64]:
        near, far = self._clip_to_bounds()
        node = np.zeros(len(near), np.int64)
        live = np.flatnonzero(near <= far)
        while len(live):
            leaf = self.tree.axis[node[live]] == LEAF
            self._descend(live[~leaf], node, near, far)
            at_leaf = live[leaf]
            self._test_leaves(at_leaf, node[at_leaf])
            ended = self.found[at_leaf]
            if not self.any_hit:
                # What lies beyond this cell cannot be nearer than a hit within it.
                ended = ended & (self.t[at_leaf] <= far[at_leaf] * (1 + 1e-6))
            popping = at_leaf[~ended & (self.top[at_leaf] > 0)]
            self.top[popping] -= 1
            top = self.top[popping]
            node[popping] = self.stack_node[popping, top]
            near[popping], far[popping] = (
                self.stack_near[popping, top],
                self.stack_far[popping, top],
            )
            beyond = self.found[popping] & (near[popping] > self.t[popping] * (1 + 1e-6))
            # The stack holds cells in order along the ray: all others are beyond, too.
            live = np.concatenate([live[~leaf], popping[~beyond]])
        t = np.where(self.found, self.t, np.float32(np.inf))
        return t, self.nodes, self.leaves, self.tests

    def _clip_to_bounds(self) -> tuple[F64, F64]:
        origin, direction = self.origin.astype(np.float64), self.direction.astype(np.float64)
        bounds = self.tree.bounds.astype(np.float64)
        reach = 1e-6 * (np.abs(bounds).max() + 1e-30)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            a = (bounds[0] - reach - origin) / direction
            b = (bounds[1] + reach - origin) / direction
        parallel = direction == 0
        inside = (origin >= bounds[0] - reach) & (origin <= bounds[1] + reach)
        low = np.where(parallel, np.where(inside, -np.inf, np.inf), np.minimum(a, b))
        high = np.where(parallel, np.where(inside, np.inf, -np.inf), np.maximum(a, b))
        near = np.maximum(low.max(axis=1), self.t_min.astype(np.float64))
        return near, np.minimum(high.min(axis=1), self.t.astype(np.float64))

    def _descend(self, rows: I64, node: I64, near: F64, far: F64) -> None:
        tree = self.tree
        at = node[rows]
        self.nodes[rows] += 1
        axis = tree.axis[at].astype(np.int64)
        origin = self.origin[rows, axis].astype(np.float64)
        direction = self.direction[rows, axis].astype(np.float64)
        plane = tree.plane[at].astype(np.float64)
        moves = direction != 0
        with np.errstate(over="ignore"):
            t = (plane - origin) / np.where(moves, direction, 1.0)
        first = np.where((origin < plane) | ((origin == plane) & (direction <= 0)), 0, 1)
        # Along the plane or away from it a ray stays on its side; one within the plane meets
        # the triangles there on both sides, as each side holds them.
        crosses = moves & (t > 0) & (t < np.inf)
        t = np.where(crosses, t, 0.0)
        slack = 1e-9 * np.abs(t)
        only_near = ~crosses | (t - slack > far[rows])
        only_far = crosses & (t + slack < near[rows])
        both = ~only_near & ~only_far
        child = tree.child[at]
        node[rows] = child + np.where(only_far, 1 - first, first)
        pushing = rows[both]
        top = self.top[pushing]
        self.stack_node[pushing, top] = (child + 1 - first)[both]
        self.stack_near[pushing, top] = np.maximum(near[pushing], t[both])
        self.stack_far[pushing, top] = far[pushing]
        self.top[pushing] += 1
        far[pushing] = np.minimum(far[pushing], t[both])

    def _test_leaves(self, rows: I64, node: I64) -> None:
        self.leaves[rows] += 1
        first, count = self.tree.first[node], self.tree.count[node]
        self.tests[rows] += count
        # Pairs of ray and triangle, all leaves at once.
        ray = np.repeat(rows, count)
        place = np.arange(len(ray)) - np.repeat(np.cumsum(count) - count, count)
        triangle = self.tree.references[np.repeat(first, count) + place]
        order = self.order[ray]
        lanes = np.arange(len(ray))[:, None]
        corners = self.triangles[triangle].transpose(1, 2, 0)
        crossings = intersect_triangles(
            np.ascontiguousarray(corners[:, order.T, lanes.T]),
            np.ascontiguousarray(self.origin[ray][lanes, order].T),
            np.ascontiguousarray(self.direction[ray][lanes, order].T),
        )
        hit = ray[crossings.lanes]
        good = (crossings.t > self.t_min[hit]) & (crossings.t < self.t[hit])
        np.minimum.at(self.t, hit[good], crossings.t[good])
        self.found[hit[good]] = True
