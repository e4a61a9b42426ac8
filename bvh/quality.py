"""Numbers that say how good a tree is, measured from its bytes or from a neutral tree.

SAH is the expected work of a random ray that ends nowhere (see `bvh.sah`). Two more say what it
leaves out:

**EPO**, effective parent overlap (Aila, Karras and Laine 2013, "On Quality Metrics of Bounding
Volume Hierarchies"): the surface that lies inside a node without belonging to it, which is what
rays that end on a surface pay for.

    EPO = sum over nodes n  C(n) * area of (surface inside box(n), not of n's subtree) / area of all

C is 1 for an inner node and for a leaf's block, as in `bvh.sah`. Boxes are closed, and a node
counts where a walk that enters every box around a point comes to it: nodes whose ancestors' boxes,
after rounding, leave the point out are not visited by anyone. A triangle that several leaves hold
(spatial splits) belongs to all of them. Here the areas are estimated by points uniform on the
surface: EPO is the mean number of nodes that a point is in and should not be. Its standard error
is that of a mean of independent points, a little too large for these, which are stratified.

**Sibling overlap**: how much the children of a node have in common,

    sum over inner nodes, over pairs of children  area(intersection) / sum over inner nodes  area

with half the surface area throughout, so it is the expected number of pairs of siblings that a
random ray through a node enters at once. Pairs that only share a face have none: along each axis
they need a length in common, or one of them is flat there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.decode import TriangleRows, decode, decode_triangles
from bvh.header import KIND_BLAS, unpack_header
from bvh.sah import INTERSECTION_COST, TRAVERSAL_COST
from bvh.tree import EMPTY, half_area, stack_bound, tree_levels

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

SAMPLES = 20_000


@dataclass(frozen=True, slots=True)
class Epo:
    """Effective parent overlap, its parts by kind of node, and the standard error of `total`."""

    inner: float
    leaf: float
    standard_error: float
    samples: int

    @property
    def total(self) -> float:
        return self.inner + self.leaf


@dataclass(frozen=True, slots=True)
class Quality:
    """`sah` is that of the boxes as they are, rounded ones included; `fill` the mean number of
    used child slots, `depth` the levels of box nodes; `bytes` is None for a tree without any.
    All numbers of a tree without primitives are 0."""

    sah: float
    epo: float
    epo_inner: float
    epo_leaf: float
    epo_standard_error: float
    epo_samples: int
    sibling_overlap: float
    fill: float
    depth: int
    stack_bound: int
    nodes: int
    leaves: int
    bytes: int | None


def container_quality(words: U32, samples: int = SAMPLES, seed: int = 0) -> Quality:
    """Of a BLAS's container (`words` starts at its header) that `validate` accepts; ValueError for
    a TLAS, whose leaves have no surface."""
    header = unpack_header(words)
    if header.kind != KIND_BLAS:
        raise ValueError("a TLAS has no surface of its own: measure its BLASes")
    image = decode(words)
    rows = decode_triangles(image.leaves, image.leaf_types, image.fan_ids)
    first = _first_of_equals(rows)
    chosen, triangle = np.unique(first, return_inverse=True)
    references = np.stack([triangle, rows.block], axis=1)
    return tree_quality(
        image.children,
        image.boxes,
        rows.positions[chosen],
        references,
        samples,
        seed,
        header.size_bytes,
    )


def _first_of_equals(rows: TriangleRows) -> I64:
    """For every row the first one of the same triangle: spatial splits put it into many blocks."""
    order = np.lexsort((rows.primitive, rows.geometry))
    before, after = order[:-1], order[1:]
    same = (rows.geometry[before] == rows.geometry[after]) & (
        rows.primitive[before] == rows.primitive[after]
    )
    same &= (rows.positions[before] == rows.positions[after]).all(axis=(1, 2))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = ~same
    first = np.empty(len(order), np.int64)
    first[order] = order[fresh][np.cumsum(fresh) - 1]
    return first


def tree_quality(
    children: I32,
    boxes: F32,
    positions: F32,
    references: I64,
    samples: int,
    seed: int,
    size: int | None = None,
) -> Quality:
    """Of a tree of `children` [nodes, width] whose slots have `boxes` [nodes, width, 2, 3].
    `positions` [m, 3, 3] are the triangles inside the leaves; `references` [n, 2] say which one
    (first) lies in which leaf; `size` in bytes."""
    used = children != EMPTY
    if not used.any():
        return Quality(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0, 0, 0, len(children), 0, size)
    epo = effective_parent_overlap(children, boxes, positions, references, samples, seed)
    return Quality(
        sah=_sah(children, boxes),
        epo=epo.total,
        epo_inner=epo.inner,
        epo_leaf=epo.leaf,
        epo_standard_error=epo.standard_error,
        epo_samples=epo.samples,
        sibling_overlap=sibling_overlap(children, boxes),
        fill=float(used.sum() / len(children)),
        depth=len(tree_levels(children)),
        stack_bound=stack_bound(children),
        nodes=len(children),
        leaves=int((used & (children < 0)).sum()),
        bytes=size,
    )


def _node_boxes(boxes: F32, used: NDArray[np.bool_]) -> F32:
    """[n, 2, 3] the union of each node's child boxes."""
    low = np.where(used[..., None], boxes[:, :, 0], np.float32(np.inf)).min(axis=1)
    high = np.where(used[..., None], boxes[:, :, 1], np.float32(-np.inf)).max(axis=1)
    return np.stack([low, high], axis=1)


def _sah(children: I32, boxes: F32) -> float:
    """As `bvh.sah.sah_cost`, from the boxes in the slots; the root's is the union of its own."""
    used = children != EMPTY
    root = float(half_area(_node_boxes(boxes[:1], used[:1])[0]))
    inner, leaf = children >= 0, used & (children < 0)
    if root == 0.0:
        return TRAVERSAL_COST * len(children) + INTERSECTION_COST * int(leaf.sum())
    inner_area = root + float(half_area(boxes[inner]).sum())
    leaf_area = float(half_area(boxes[leaf]).sum())
    return (TRAVERSAL_COST * inner_area + INTERSECTION_COST * leaf_area) / root


def sibling_overlap(children: I32, boxes: F32) -> float:
    """As the module says; 0 where no node has an area."""
    used = children != EMPTY
    total = float(half_area(_node_boxes(boxes, used)).sum())
    if total == 0.0:
        return 0.0
    shared = 0.0
    width = children.shape[1]
    for a in range(width):
        for b in range(a + 1, width):
            rows = np.flatnonzero(used[:, a] & used[:, b])
            one, other = boxes[rows, a], boxes[rows, b]
            low = np.maximum(one[:, 0], other[:, 0])
            high = np.minimum(one[:, 1], other[:, 1])
            flat = (one[:, 0] == one[:, 1]) | (other[:, 0] == other[:, 1])
            meets = ((high > low) | ((high == low) & flat)).all(axis=1)
            shared += float(half_area(np.stack([low, high], axis=1)[meets]).sum())
    return shared / total


def surface_points(positions: F32, samples: int, rng: np.random.Generator) -> tuple[F64, I64]:
    """(points [samples, 3], triangle of each), uniform by area over triangles `[m, 3, 3]`; none
    where no triangle has an area. Source of the warp: Turk 1990."""
    corner = positions.astype(np.float64)
    edges = corner[:, 1:] - corner[:, :1]
    # In units of the largest side, so that no product leaves float64's range.
    scale = float(np.abs(edges).max(initial=0.0)) or 1.0
    area = np.linalg.norm(np.cross(edges[:, 0] / scale, edges[:, 1] / scale), axis=1)
    ends = np.cumsum(area)
    if not len(ends) or ends[-1] == 0.0:
        return np.zeros((0, 3)), np.zeros(0, np.int64)
    # Stratified: every triangle of an n-th of the surface gets its points.
    place = (np.arange(samples) + rng.random(samples)) / samples * ends[-1]
    triangle = np.minimum(np.searchsorted(ends, place, side="right"), len(ends) - 1)
    root, v = np.sqrt(rng.random(samples)), rng.random(samples)
    weights = np.stack([root * (1 - v), root * v], axis=1)
    # From a corner along the edges: exact along an axis on which a triangle is flat.
    return corner[triangle, 0] + (weights[..., None] * edges[triangle]).sum(axis=1), triangle


def effective_parent_overlap(
    children: I32,
    boxes: F32,
    positions: F32,
    references: I64,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Epo:
    """EPO of nodes `children [n, width]` with `boxes [n, width, 2, 3]` in their slots, node 0 the
    root; `references [k, 2]` name a triangle of `positions [m, 3, 3]` and a leaf (p of ~p) that
    holds it. The root holds all surface and so never counts. 0 where no triangle has an area."""
    rng = np.random.default_rng(seed)
    points, triangle = surface_points(positions, samples, rng)
    if not len(points):
        return Epo(0.0, 0.0, 0.0, 0)
    first, last, rank = _leaf_ranges(children)
    leaves = len(rank)
    held = np.sort(references[:, 0] * leaves + rank[references[:, 1]])
    counts = np.zeros((2, samples), np.int64)  # inner nodes and leaves that hold a strange point
    used = children != EMPTY
    sample, node = np.arange(samples), np.zeros(samples, np.int64)
    while len(sample):
        box, at = boxes[node], points[sample][:, None]
        with np.errstate(invalid="ignore"):  # empty slots may hold NaN
            inside = ((box[:, :, 0] <= at) & (at <= box[:, :, 1])).all(axis=2) & used[node]
        row, slot = np.nonzero(inside)
        sample, child = sample[row], children[node[row], slot].astype(np.int64)
        inner = child >= 0
        below = np.maximum(child, 0)
        leaf_rank = rank[np.where(inner, 0, ~child)]
        low = np.where(inner, first[below], leaf_rank)
        high = np.where(inner, last[below], leaf_rank)
        start = triangle[sample] * leaves
        own = np.searchsorted(held, start + low) < np.searchsorted(held, start + high, "right")
        for kind, chosen in enumerate((inner, ~inner)):
            counts[kind] += np.bincount(sample[chosen & ~own], minlength=samples)
        sample, node = sample[inner], child[inner]
    each = TRAVERSAL_COST * counts[0] + INTERSECTION_COST * counts[1]
    return Epo(
        inner=TRAVERSAL_COST * float(counts[0].mean()),
        leaf=INTERSECTION_COST * float(counts[1].mean()),
        standard_error=float(each.std(ddof=1) / np.sqrt(samples)) if samples > 1 else 0.0,
        samples=samples,
    )


def _leaf_ranges(children: I32) -> tuple[I64, I64, I64]:
    """First and last leaf of every node in depth-first order, and the rank of every leaf, by its
    primitive."""
    leaf = (children < 0) & (children != EMPTY)
    count = np.zeros(len(children), np.int64)
    slots = leaf.astype(np.int64)
    levels = tree_levels(children)
    for level in reversed(levels):
        inner = children[level] >= 0
        slots[level] += np.where(inner, count[np.maximum(children[level], 0)], 0)
        count[level] = slots[level].sum(axis=1)
    first = np.zeros(len(children), np.int64)
    before = np.cumsum(slots, axis=1) - slots
    primitive = ~children[leaf]
    rank = np.zeros(int(primitive.max(initial=0)) + 1, np.int64)
    for level in levels:
        at = first[level][:, None] + before[level]
        here = children[level]
        first[here[here >= 0]] = at[here >= 0]
        rank[~here[leaf[level]]] = at[leaf[level]]
    return first, first + count - 1, rank
