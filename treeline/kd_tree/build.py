"""SAH KD-tree over triangles, level by level in NumPy.

A node is split where

    cost = Ct + Ci * (1 - bonus) * (area(left) * n_left + area(right) * n_right) / area(node)

is least among 31 evenly spaced planes an axis; it becomes a leaf where no plane costs less than
Ci * n, the number of its triangles. A triangle goes to every side that its box, clipped to the
node, touches, so one that crosses a plane is named twice. Source: MacDonald and Booth 1990; Wald
and Havran 2006, "On building fast kd-trees for ray tracing, and on doing that in O(N log N)"
(costs, the bonus for empty sides); the depth limit 8 + 1.3 log2 n is Havran's. Boxes are clipped,
triangles are not (no "perfect splits"): leaves name more triangles than the best builders' do.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.tree import Bounds

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

TRAVERSAL_COST = 15.0  # Ct, of one inner node (Wald and Havran 2006, section 5.1)
INTERSECTION_COST = 20.0  # Ci, of one triangle
EMPTY_BONUS = 0.2  # cost taken off where one side holds nothing
BINS = 32
NODE_BYTES = 8  # plane and axis, or first reference and count; children side by side
REFERENCE_BYTES = 4
LEAF = 3  # in `axis`


@dataclass(frozen=True, slots=True)
class KdTree:
    """Node 0 is the root. An inner node has `axis` 0..2, its plane at `plane` and children
    `child`, `child + 1` (below, above); a leaf has axis LEAF and the references
    `references[first : first + count]`, which are triangles."""

    axis: NDArray[np.uint8]  # [n]
    plane: F32  # [n]
    child: I64  # [n]
    first: I64  # [n]
    count: I64  # [n]
    references: I64
    bounds: F32  # [2, 3]
    depth: int

    @property
    def bytes(self) -> int:
        """Of nodes and references, in the usual packed form, without vertices."""
        return NODE_BYTES * len(self.axis) + REFERENCE_BYTES * len(self.references)


def build(boxes: Bounds) -> KdTree:
    """Over triangle boxes `[n, 2, 3]`, n >= 1, finite."""
    whole = np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])
    max_depth = int(8 + 1.3 * np.log2(max(len(boxes), 1)))
    axis, plane, child, first, count = [], [], [], [], []
    references: list[I64] = []
    primitive = np.arange(len(boxes))
    low, high = boxes[:, 0].astype(np.float64), boxes[:, 1].astype(np.float64)
    owner = np.zeros(len(boxes), np.int64)  # node of the level that each reference is in
    cells = whole[None].astype(np.float64)  # [nodes of the level, 2, 3]
    made, kept, depth = 0, 0, 0
    while len(cells):
        nodes = len(cells)
        size = np.bincount(owner, minlength=nodes)
        best_axis, best_plane, best_cost = _best_planes(low, high, owner, cells, size)
        split = best_cost < INTERSECTION_COST * size
        if depth >= max_depth:
            split[:] = False
        rank = np.cumsum(split) - 1
        axis.append(np.where(split, best_axis, LEAF).astype(np.uint8))
        plane.append(np.where(split, best_plane, 0.0).astype(np.float32))
        child.append(np.where(split, made + nodes + 2 * rank, -1))
        stays = ~split[owner]
        references.append(primitive[stays])
        start = np.cumsum(np.where(split, 0, size)) - np.where(split, 0, size)
        first.append(np.where(split, 0, kept + start))
        count.append(np.where(split, 0, size))
        kept += int(stays.sum())
        made += nodes

        go = ~stays
        primitive, low, high, owner = primitive[go], low[go], high[go], owner[go]
        # Planes are stored in float32, and the sides are those of the stored plane.
        at = best_plane.astype(np.float32).astype(np.float64)[owner]
        on = best_axis[owner]
        rows = np.arange(len(owner))
        below, above = low[rows, on] <= at, high[rows, on] >= at
        low_above, high_below = low.copy(), high.copy()
        high_below[rows, on] = np.minimum(high[rows, on], at)
        low_above[rows, on] = np.maximum(low[rows, on], at)
        next_owner = np.concatenate([2 * rank[owner[below]], 2 * rank[owner[above]] + 1])
        order = np.argsort(next_owner, kind="stable")
        primitive = np.concatenate([primitive[below], primitive[above]])[order]
        low = np.concatenate([low[below], low_above[above]])[order]
        high = np.concatenate([high_below[below], high[above]])[order]
        owner = next_owner[order]
        cells = _split_cells(cells[split], best_axis[split], best_plane[split])
        depth += 1
    return KdTree(
        np.concatenate(axis),
        np.concatenate(plane),
        np.concatenate(child),
        np.concatenate(first),
        np.concatenate(count),
        np.concatenate(references),
        whole,
        depth,
    )


def _split_cells(cells: F64, axis: I64, plane: F64) -> F64:
    """[2 n, 2, 3] the cells below and above each plane, side by side."""
    out = np.repeat(cells, 2, axis=0)
    rows = np.arange(len(cells))
    at = plane.astype(np.float32).astype(np.float64)
    out[2 * rows, 1, axis] = at
    out[2 * rows + 1, 0, axis] = at
    return out


def _best_planes(low: F64, high: F64, owner: I64, cells: F64, size: I64) -> tuple[I64, F64, F64]:
    """Axis, position and cost of the cheapest plane of each cell; infinite where none is."""
    nodes = len(cells)
    extent = cells[:, 1] - cells[:, 0]
    area = _area(extent)
    best_axis = np.zeros(nodes, np.int64)
    best_plane = np.zeros(nodes)
    best_cost = np.full(nodes, np.inf)
    steps = np.arange(1, BINS) / BINS
    for axis in range(3):
        width = extent[:, axis]
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(width > 0, BINS / width, 0.0)
        offset = cells[owner, 0, axis]
        # A reference is below plane k (at step k / BINS) when it starts at or before it.
        starts = np.ceil((low[:, axis] - offset) * scale[owner]).clip(0, BINS).astype(np.int64)
        ends = np.floor((high[:, axis] - offset) * scale[owner]).clip(0, BINS).astype(np.int64)
        cell = owner * (BINS + 1)
        starting = np.bincount(cell + starts, minlength=nodes * (BINS + 1))
        ending = np.bincount(cell + ends, minlength=nodes * (BINS + 1))
        below = np.cumsum(starting.reshape(nodes, -1), axis=1)[:, 1:BINS]
        above = size[:, None] - np.cumsum(ending.reshape(nodes, -1), axis=1)[:, : BINS - 1]
        sides = []
        for share in (steps, 1 - steps):
            part = np.repeat(extent[:, None], BINS - 1, axis=1)
            part[:, :, axis] *= share
            sides.append(_area(part))
        with np.errstate(divide="ignore", invalid="ignore"):
            work = (sides[0] * below + sides[1] * above) / area[:, None]
        empty = (below == 0) | (above == 0)
        cost = TRAVERSAL_COST + INTERSECTION_COST * work * np.where(empty, 1 - EMPTY_BONUS, 1.0)
        cost[~np.isfinite(cost)] = np.inf
        cost[width <= 0] = np.inf
        pick = np.argmin(cost, axis=1)
        rows = np.arange(nodes)
        better = cost[rows, pick] < best_cost
        best_cost[better] = cost[rows, pick][better]
        best_axis[better] = axis
        best_plane[better] = (cells[:, 0, axis] + width * steps[pick])[better]
    return best_axis, best_plane, best_cost


def _area(extent: F64) -> F64:
    """Half the surface area of boxes with sides `[..., 3]`."""
    x, y, z = extent[..., 0], extent[..., 1], extent[..., 2]
    return np.asarray(x * y + y * z + z * x)
