"""Binned SAH, top down, one whole level of nodes at a time.

Two phases. While a node holds more than `sweep_below` primitives its centroids are sorted into
`bins` a axis and the cheapest boundary between bins wins (Wald 2007, "On fast construction of
SAH-based bounding volume hierarchies"). Smaller nodes are put aside and then split exactly: every
position of the centroid order on every axis. Leaves hold one primitive each.

This is the build on the CPU. `bvh.gpu.binned_sah` is the same heuristic in another shape, with
trees of the same cost that are not the same node for node: one of its twins, in NumPy, takes longer
than this.

Boxes are kept as six rows -min.x -min.y -min.z max.x max.y max.z, so that a union is one maximum.
Loops run over levels, axes, bins or slots, and chunks of nodes; none over primitives.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.tree import EMPTY, MAX_DEPTH, Bounds, Tree, fit_bounds

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Below this extent (of a root scaled to one) centroids count as equal: 1/extent stays finite.
_SMALLEST_EXTENT = np.float32(1e-30)
_AXES = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class BinnedSahConfig:
    """`bins` an axis; nodes of at most `sweep_below` primitives are swept exactly; a
    node whose primitives would just fit below `max_depth` if halved from here on is halved, which
    bounds the depth of geometry that SAH would peel one primitive at a time; a chunk of nodes has
    at most `chunk_bins` bins. The GPU's build (`bvh.gpu.binned_sah`) has its own bins and sweep and
    takes `max_depth` and `free_levels` alone: the levels, beyond those that halving would need,
    that SAH may use before one workgroup finishes a node."""

    bins: int = 32
    sweep_below: int = 64
    max_depth: int = MAX_DEPTH
    chunk_bins: int = 1 << 19
    free_levels: int = 12


@dataclass(frozen=True, slots=True)
class _Work:
    """Open nodes and, node by node, their primitives."""

    node: I64  # [k] inner node index
    depth: I64  # [k] 1 = the root
    count: I64  # [k] primitives, at least two
    primitive: I32  # [m]
    box: F32  # [6, m]

    @property
    def start(self) -> I64:
        return np.cumsum(self.count) - self.count

    def must_halve(self, max_depth: int) -> Mask:
        """[k] nodes that need an even cut so that their leaves hang at most at `max_depth`."""
        levels = np.ceil(np.log2(self.count)).astype(np.int64)  # of inner nodes, when halved
        return self.depth + levels > max_depth


class _Topology:
    """Inner nodes handed out in order of creation."""

    def __init__(self, primitive_count: int) -> None:
        self.children = np.full((max(primitive_count - 1, 1), 2), EMPTY, np.int32)
        self.used = 1

    def split(self, work: _Work, left_count: I64) -> _Work:
        """Records the two children of every node of `work`, whose primitives already stand left
        before right; returns those children that have to be split again."""
        count = np.stack([left_count, work.count - left_count], axis=1).reshape(-1)
        start = np.cumsum(count) - count
        inner = count > 1
        child = np.empty(len(count), np.int64)
        fresh = int(inner.sum())
        child[inner] = self.used + np.arange(fresh)
        child[~inner] = ~work.primitive[start[~inner]].astype(np.int64)
        self.used += fresh
        self.children[work.node] = child.reshape(-1, 2)
        keep = np.repeat(inner, count)
        depth = np.repeat(work.depth + 1, 2)[inner]
        return _Work(child[inner], depth, count[inner], work.primitive[keep], work.box[:, keep])


def build(bounds: Bounds, config: BinnedSahConfig) -> Tree:
    """Binary tree over finite boxes `[n, 2, 3]`, one primitive a leaf."""
    count = len(bounds)
    topology = _Topology(count)
    if count == 1:
        topology.children[0, 0] = ~0
    if count >= 2:
        work = _Work(
            np.zeros(1, np.int64),
            np.ones(1, np.int64),
            np.full(1, count, np.int64),
            np.arange(count, dtype=np.int32),
            _normalised_rows(bounds),
        )
        small: list[_Work] = []
        while len(work.node):
            small.append(_select(work, work.count <= config.sweep_below))
            work = _select(work, work.count > config.sweep_below)
            if len(work.node):
                work = topology.split(*_split_binned(work, config))
        work = _concatenate(small)
        while len(work.node):
            work = topology.split(*_split_swept(work, config))
    return fit_bounds(topology.children, bounds)


def _normalised_rows(bounds: Bounds) -> F32:
    """[6, n] rows, scaled by a power of two to at most one so that areas stay in float32's range.
    Used to choose splits only: the tree's bounds come from the unscaled boxes."""
    largest = float(np.abs(bounds).max())
    exponent = int(np.ceil(np.log2(largest))) if largest > 0.0 else 0
    rows = np.empty((6, len(bounds)), np.float32)
    np.ldexp(bounds[:, 0].T, -exponent, out=rows[:3])
    np.negative(rows[:3], out=rows[:3])
    np.ldexp(bounds[:, 1].T, -exponent, out=rows[3:])
    return rows


def _select(work: _Work, nodes: Mask) -> _Work:
    keep = np.repeat(nodes, work.count)
    return _Work(
        work.node[nodes],
        work.depth[nodes],
        work.count[nodes],
        work.primitive[keep],
        work.box[:, keep],
    )


def _concatenate(parts: list[_Work]) -> _Work:
    return _Work(
        np.concatenate([p.node for p in parts]),
        np.concatenate([p.depth for p in parts]),
        np.concatenate([p.count for p in parts]),
        np.concatenate([p.primitive for p in parts]),
        np.concatenate([p.box for p in parts], axis=1),
    )


def _area(box: F32) -> F32:
    """Half area of boxes given as six leading rows; 0 where empty."""
    x = np.maximum(box[3] + box[0], 0)
    y = np.maximum(box[4] + box[1], 0)
    z = np.maximum(box[5] + box[2], 0)
    return np.asarray(x * y + y * z + z * x)


def _centroid(box: F32, axis: int) -> F32:
    return np.asarray(box[3 + axis] - box[axis])  # twice the centre


def _split_binned(work: _Work, config: BinnedSahConfig) -> tuple[_Work, I64]:
    """Cuts every node; returns the work with left primitives first and the left counts."""
    node_count = len(work.node)
    low = np.empty((3, node_count), np.float32)
    scale = np.zeros((3, node_count), np.float32)
    for axis in _AXES:
        centre = _centroid(work.box, axis)
        low[axis] = np.minimum.reduceat(centre, work.start)
        extent = np.maximum.reduceat(centre, work.start) - low[axis]
        open_axis = extent > _SMALLEST_EXTENT
        scale[axis, open_axis] = np.float32(config.bins * 0.999999) / extent[open_axis]
    flat = ~(scale > 0).any(axis=0)
    halve = work.must_halve(config.max_depth) | flat
    go_left = np.empty(len(work.primitive), np.bool_)
    per_chunk = max(1, config.chunk_bins // config.bins)
    ends = np.cumsum(work.count)
    for first in range(0, node_count, per_chunk):
        nodes = slice(first, min(first + per_chunk, node_count))
        begin = int(ends[first] - work.count[first])
        span = slice(begin, int(ends[nodes.stop - 1]))
        go_left[span] = _choose_bins(
            work.box[:, span], work.count[nodes], low[:, nodes], scale[:, nodes], config.bins
        )
    if halve.any():
        _halve(work, halve, scale, go_left)
    return _partition(work, go_left)


def _choose_bins(box: F32, count: I64, low: F32, scale: F32, bins: int) -> Mask:
    """Which primitives go left, for one chunk of nodes."""
    nodes = len(count)
    of_primitive = np.repeat(np.arange(nodes, dtype=np.int32), count)
    best_cost = np.full(nodes, np.inf, np.float32)
    best_axis = np.zeros(nodes, np.int8)
    best_bin = np.zeros(nodes, np.int8)
    bin_of = np.empty((3, len(of_primitive)), np.int8)
    for axis in _AXES:
        place = (_centroid(box, axis) - low[axis, of_primitive]) * scale[axis, of_primitive]
        bin_of[axis] = np.minimum(place, bins - 1)
        key = of_primitive * np.int32(bins) + bin_of[axis]
        filled = np.bincount(key, minlength=nodes * bins).reshape(nodes, bins)
        boxes = np.full((6, nodes * bins), -np.inf, np.float32)
        for row in range(6):
            np.maximum.at(boxes[row], key, box[row])
        cost = _boundary_costs(boxes.reshape(6, nodes, bins), filled)
        cost[:, scale[axis] == 0] = np.inf
        cheapest = np.argmin(cost, axis=0)
        value = cost[cheapest, np.arange(nodes)]
        better = value < best_cost
        best_cost[better] = value[better]
        best_axis[better] = axis
        best_bin[better] = cheapest[better]
    mine = bin_of[best_axis[of_primitive], np.arange(len(of_primitive))]
    return np.asarray(mine <= best_bin[of_primitive])


def _boundary_costs(boxes: F32, filled: I64) -> F32:
    """[bins - 1, nodes] cost of cutting after each bin, infinite where a side is empty."""
    bins = filled.shape[1]
    columns = np.ascontiguousarray(boxes.transpose(2, 0, 1))  # [bins, 6, nodes]
    count = filled.T.astype(np.float32)
    total = count.sum(axis=0)
    with np.errstate(invalid="ignore"):
        cost = np.full((bins - 1, filled.shape[0]), np.inf, np.float32)
        right = columns[bins - 1].copy()
        right_area = np.empty_like(cost)
        for i in range(bins - 2, -1, -1):
            right_area[i] = _area(right)
            np.maximum(right, columns[i], out=right)
        left = columns[0].copy()
        left_count = np.zeros_like(total)
        for i in range(bins - 1):
            np.maximum(left, columns[i], out=left)
            left_count = left_count + count[i]
            right_count = total - left_count
            value = _area(left) * left_count + right_area[i] * right_count
            cost[i] = np.where((left_count > 0) & (right_count > 0), value, np.inf)
    return cost


def _halve(work: _Work, nodes: Mask, scale: F32, go_left: Mask) -> None:
    """Cuts the marked nodes at the median of their widest centroid axis; where all centroids are
    equal any order will do, and primitives keep theirs."""
    with np.errstate(divide="ignore"):
        widest = np.argmax(np.where(scale > 0, 1.0 / scale, 0.0), axis=0)
    at = np.flatnonzero(np.repeat(nodes, work.count))
    count = work.count[nodes]
    owner = np.repeat(np.arange(len(count)), count)
    axis = np.repeat(widest[nodes], count)
    centre = work.box[3 + axis, at] - work.box[axis, at]
    order = np.lexsort((centre, owner))
    rank = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
    go_left[at[order]] = rank < np.repeat(count // 2, count)


def _partition(work: _Work, go_left: Mask) -> tuple[_Work, I64]:
    """Stable partition inside every node."""
    start, count = work.start, work.count
    before: I64 = np.cumsum(go_left) - go_left  # lefts before this primitive, over all nodes
    left_count = np.add.reduceat(go_left, start, dtype=np.int64)
    lefts_before_node: I64 = np.repeat(before[start], count)
    index = np.arange(len(go_left))
    rank_left = before - lefts_before_node
    node_start = np.repeat(start, count)
    target = np.where(
        go_left,
        node_start + rank_left,
        node_start + np.repeat(left_count, count) + (index - node_start) - rank_left,
    )
    source = np.empty_like(target)
    source[target] = index
    moved = _Work(work.node, work.depth, count, work.primitive[source], work.box[:, source])
    return moved, left_count


def _split_swept(work: _Work, config: BinnedSahConfig) -> tuple[_Work, I64]:
    """Like `_split_binned` with every position of the centroid order as a candidate. Nodes are
    taken in classes of similar count, so that little is padded."""
    left_count = np.empty(len(work.node), np.int64)
    source = np.empty(len(work.primitive), np.int64)
    start = work.start
    smallest, slots = 2, 2
    while smallest <= config.sweep_below:
        chosen = np.flatnonzero((work.count >= smallest) & (work.count <= slots))
        step = max(1, config.chunk_bins // slots)
        for first in range(0, len(chosen), step):
            nodes = chosen[first : first + step]
            _sweep(work.box, start[nodes], work.count[nodes], slots, nodes, left_count, source)
        smallest, slots = slots + 1, slots * 2
    halve = work.must_halve(config.max_depth)
    left_count[halve] = work.count[halve] // 2  # along the axis that the sweep liked best
    moved = _Work(work.node, work.depth, work.count, work.primitive[source], work.box[:, source])
    return moved, left_count


def _sweep(
    box: F32, start: I64, count: I64, slots: int, nodes: I64, left_count: I64, source: I64
) -> None:
    """Writes the best order into `source` and its cut into `left_count` for nodes of at most
    `slots` primitives."""
    k = len(nodes)
    offset = np.arange(slots)[:, None]
    valid = offset < count
    at = np.where(valid, start + offset, start)  # [slots, k]
    best_cost = np.full(k, np.inf, np.float32)
    best_cut = np.ones(k, np.int64)
    best_order = at.copy()
    every = np.arange(k)
    # Central cuts first: of equal costs the balanced one wins.
    cuts = sorted(range(1, slots), key=lambda cut: abs(2 * cut - slots))
    for axis in _AXES:
        if slots == 2 and axis:
            break  # a node of two has one cut, whatever the axis
        key = np.where(valid, box[3 + axis, at] - box[axis, at], np.inf)
        order = np.argsort(key, axis=0, kind="stable")
        ranked = at[order, every]
        column = box[:, ranked]  # [6, slots, k]
        column[:, ~valid] = -np.inf
        with np.errstate(invalid="ignore"):
            suffix = np.empty((slots, k), np.float32)
            right = np.full((6, k), -np.inf, np.float32)
            for i in range(slots - 1, 0, -1):
                np.maximum(right, column[:, i], out=right)
                suffix[i] = _area(right)
            prefix = np.empty((slots, k), np.float32)
            left = column[:, 0].copy()
            for i in range(1, slots):
                prefix[i] = _area(left)
                np.maximum(left, column[:, i], out=left)
        for cut in cuts:
            cost = np.where(
                cut < count, prefix[cut] * cut + suffix[cut] * (count - cut), np.inf
            ).astype(np.float32)
            better = cost < best_cost
            best_cost[better] = cost[better]
            best_cut[better] = cut
            best_order[:, better] = ranked[:, better]
    left_count[nodes] = best_cut
    source[(start + offset)[valid]] = best_order[valid]
