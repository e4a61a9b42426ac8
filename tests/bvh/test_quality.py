from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.builders import lbvh
from bvh.quality import (
    Quality,
    container_quality,
    effective_parent_overlap,
    sibling_overlap,
    surface_points,
    tree_quality,
)
from bvh.sah import sah_cost
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.transforms.collapse import collapse_best
from bvh.tree import EMPTY, Tree, child_bounds, fit_bounds
from bvh.triangles import triangle_bounds


def _box(low: Any, high: Any) -> np.ndarray:
    return np.array([low, high], np.float32)


def _square(x: float, z: float = 0.0, size: float = 1.0) -> np.ndarray:
    """Two triangles that make a square in the plane z, from (x, 0) on."""
    a, b, c, d = ([x, 0, z], [x + size, 0, z], [x, size, z], [x + size, size, z])
    return np.array([[a, b, c], [b, d, c]], np.float32)


def quality_of(tree: Tree, bounds: Any, positions: Any, owner: Any, **more: int) -> Quality:
    """Of a tree over primitives with these bounds; `owner` says in which one each triangle lies."""
    boxes = child_bounds(tree.children, tree.bounds, bounds)
    references = np.stack([np.arange(len(owner)), owner], axis=1)
    return tree_quality(tree.children, boxes, positions, references, **{"seed": 0} | more)


def test_overlap_of_two_squares_by_hand() -> None:
    """Squares [0, 1] and [0.5, 1.5] in one plane, a leaf each: half of either lies in the other's
    box, so a point is in half a strange leaf on average."""
    positions = np.concatenate([_square(0.0), _square(0.5)])
    owner = np.array([0, 0, 1, 1])
    bounds = np.stack([_box([0, 0, 0], [1, 1, 0]), _box([0.5, 0, 0], [1.5, 1, 0])])
    tree = fit_bounds(np.array([[~0, ~1]], np.int32), bounds)
    quality = quality_of(tree, bounds, positions, owner, samples=4000)
    assert quality.epo_inner == 0
    assert abs(quality.epo - 0.5) < 4 * quality.epo_standard_error
    assert np.isclose(quality.epo_standard_error, 0.5 / np.sqrt(4000), rtol=0.01)
    # Areas (half): the intersection 0.5 x 1, the root 1.5 x 1.
    assert np.isclose(quality.sibling_overlap, 0.5 / 1.5)
    assert np.isclose(quality.sah, 1 + 2 / 1.5)
    assert (quality.fill, quality.depth, quality.stack_bound) == (2.0, 1, 2)
    assert (quality.nodes, quality.leaves, quality.bytes) == (1, 2, None)


def test_inner_nodes_and_own_leaves_by_hand() -> None:
    """Leaves 0 and 2 under one node whose box spans leaf 1: a third of the surface lies in that
    node without belonging to it; nothing lies in a strange leaf."""
    squares = [_square(0.0), _square(2.0), _square(4.0)]
    owner = np.repeat([0, 1, 2], 2)
    bounds = np.stack([_box([x, 0, 0], [x + 1, 1, 0]) for x in (0, 2, 4)])
    tree = fit_bounds(np.array([[1, ~1], [~0, ~2]], np.int32), bounds)
    quality = quality_of(tree, bounds, np.concatenate(squares), owner, samples=3000)
    assert quality.epo_leaf == 0
    assert abs(quality.epo - 1 / 3) < 4 * quality.epo_standard_error
    # Leaf 1 in the box of node 1: 1 x 1; nodes: 5 x 1 each.
    assert np.isclose(quality.sibling_overlap, 1 / 10)


def test_a_triangle_of_two_leaves_belongs_to_both() -> None:
    positions = np.concatenate([_square(0.0, size=2.0)])
    halves = np.stack([_box([0, 0, 0], [1, 2, 0]), _box([1, 0, 0], [2, 2, 0])])
    children = np.array([[~0, ~1]], np.int32)
    boxes = child_bounds(children, fit_bounds(children, halves).bounds, halves)
    both = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert effective_parent_overlap(children, boxes, positions, both).total == 0
    one = np.array([[0, 0], [1, 0]])
    estimate = effective_parent_overlap(children, boxes, positions, one, samples=2000)
    assert abs(estimate.leaf - 0.5) < 4 * estimate.standard_error


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        (([1, 0, 0], [2, 1, 1]), 0.0),  # a face in common
        (([0.5, 0, 0], [2, 1, 1]), 0.5 + 0.5 + 1.0),
        (([0, 0, 1], [1, 1, 1]), 1.0),  # flat, on the face
        (([0.25, 0.25, 0.5], [0.75, 0.75, 0.5]), 0.25),  # flat, inside
        (([3, 3, 3], [4, 4, 4]), 0.0),
    ],
)
def test_sibling_overlap_of_a_pair(other: Any, shared: float) -> None:
    boxes = np.stack([_box([0, 0, 0], [1, 1, 1]), _box(*other)])[None]
    whole = np.maximum(boxes[0, 0, 1], boxes[0, 1, 1]) - np.minimum(boxes[0, 0, 0], boxes[0, 1, 0])
    area = whole[0] * whole[1] + whole[1] * whole[2] + whole[2] * whole[0]
    children = np.array([[~0, ~1]], np.int32)
    assert np.isclose(sibling_overlap(children, boxes), shared / area)


def _soup(rng: np.random.Generator, count: int) -> np.ndarray:
    centre = rng.random((count, 1, 3))
    return (centre + 0.2 * rng.normal(size=(count, 3, 3))).astype(np.float32)


def _brute_force(tree: Tree, bounds: np.ndarray, points: np.ndarray, owner: np.ndarray) -> Any:
    """[points] strange inner nodes and leaves, node by node, without walks."""
    leaves: dict[int, set[int]] = {}

    def collect(node: int) -> set[int]:
        found: set[int] = set()
        for child in tree.children[node].tolist():
            if child >= 0:
                found |= collect(child)
            elif child != EMPTY:
                found.add(~child)
        leaves[node] = found
        return found

    collect(0)
    inner, leaf = np.zeros(len(points)), np.zeros(len(points))
    for i, point in enumerate(points):
        for node, held in leaves.items():
            low, high = tree.bounds[node]
            if owner[i] not in held and (low <= point).all() and (point <= high).all():
                inner[i] += 1
        for primitive, (low, high) in enumerate(bounds):
            if primitive != owner[i] and (low <= point).all() and (point <= high).all():
                leaf[i] += 1
    return inner, leaf


@pytest.mark.parametrize("wide", [False, True])
def test_epo_equals_brute_force_over_the_same_points(rng: Any, wide: bool) -> None:
    triangles = _soup(rng, 60)
    bounds = triangle_bounds(triangles)
    tree = lbvh.build(bounds, lbvh.LbvhConfig())
    tree = collapse_best(tree) if wide else tree
    owner = np.arange(60)
    quality = quality_of(tree, bounds, triangles, owner, samples=300, seed=5)
    points, triangle = surface_points(triangles, 300, np.random.default_rng(5))
    inner, leaf = _brute_force(tree, bounds, points, triangle)
    assert quality.epo_inner == inner.mean() and quality.epo_leaf == leaf.mean()
    assert quality.epo > 1
    assert np.isclose(quality.epo_standard_error, (inner + leaf).std(ddof=1) / np.sqrt(300))
    assert np.isclose(quality.sah, sah_cost(tree, bounds))


def test_points_are_uniform_by_area(rng: Any) -> None:
    triangles = _soup(rng, 7)
    triangles[3] *= 5
    triangles[5, 2] = triangles[5, 1]  # no area
    edges = triangles[:, 1:] - triangles[:, :1]
    area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    points, triangle = surface_points(triangles, 20_000, rng)
    share = np.bincount(triangle, minlength=7) / 20_000
    assert np.allclose(share, area / area.sum(), atol=1e-3)
    inside = points[triangle == 3]
    assert np.allclose(inside.mean(axis=0), triangles[3].mean(axis=0), atol=0.1)


def _blas(triangles: np.ndarray, **options: Any) -> Any:
    count = len(triangles)
    ids, zeros = np.arange(count, dtype=np.uint32), np.zeros(count, np.uint32)
    return build_blas(triangles, zeros, ids, np.ones(1, np.bool_), BuildOptions(**options))


@pytest.mark.parametrize("leaf", [1, 2, 4])
@pytest.mark.parametrize("nodes", ["fp32", "fp16"])
def test_of_a_container(rng: Any, leaf: int, nodes: str) -> None:
    """Numbers from the bytes against those that the build noted."""
    x, y = np.meshgrid(np.arange(13.0), np.arange(13.0), indexing="ij")
    grid = np.stack([x + 0.4 * y, y - 0.4 * x, 0.3 * np.sin(x + y)], axis=-1).astype(np.float32)
    a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[:-1, 1:], grid[1:, 1:]
    corners = np.stack([np.stack([a, b, c], 2), np.stack([b, d, c], 2)], axis=2)
    blas = _blas(corners.reshape(-1, 3, 3), leaf=leaf, nodes=nodes)
    quality = container_quality(blas.words)
    stats = blas.stats
    assert quality.leaves == stats.blocks and quality.nodes == stats.nodes_fp16 + stats.nodes_fp32
    assert (quality.fill, quality.depth) == (stats.fill, stats.depth)
    assert (quality.stack_bound, quality.bytes) == (stats.stack_bound, stats.bytes)
    if nodes == "fp32":
        assert np.isclose(quality.sah, stats.sah)
    else:
        assert stats.sah < quality.sah < 1.1 * stats.sah
    assert 0 < quality.epo < 4 and quality.epo_standard_error < 0.02
    assert quality == container_quality(blas.words)


def test_a_duplicated_triangle_is_one_surface(rng: Any) -> None:
    """The same triangles twice, as spatial splits leave them: half of the leaves are not strange
    to any point."""
    triangles = np.concatenate([_square(3.0 * i) for i in range(8)])
    ids = np.tile(np.arange(16, dtype=np.uint32), 2)
    twice = np.concatenate([triangles, triangles])
    options = BuildOptions(leaf=1)
    zeros, opaque = np.zeros(32, np.uint32), np.ones(1, np.bool_)
    own = container_quality(build_blas(twice, zeros, ids, opaque, options).words)
    other = np.arange(32, dtype=np.uint32)
    strange = container_quality(build_blas(twice, zeros, other, opaque, options).words)
    assert own.epo_leaf + 0.9 < strange.epo_leaf


def test_nothing_to_measure() -> None:
    empty = container_quality(_blas(np.zeros((0, 3, 3), np.float32)).words)
    assert (empty.sah, empty.epo, empty.sibling_overlap, empty.leaves) == (0, 0, 0, 0)
    one = container_quality(_blas(_square(0.0)[:1]).words)
    assert (one.epo, one.sibling_overlap, one.leaves) == (0, 0, 1)
    # Triangles on a line have no area, and no EPO.
    line = np.zeros((2, 3, 3), np.float32)
    line[:, 1:, 0] = 1
    tree = fit_bounds(np.array([[~0, ~1]], np.int32), triangle_bounds(line))
    assert quality_of(tree, triangle_bounds(line), line, np.arange(2), samples=9).epo_samples == 0


def test_a_tlas_has_no_surface() -> None:
    scene = assemble([_blas(_square(0.0))], ["a"], [BvhInstance(0, np.eye(4))])
    with pytest.raises(ValueError, match="TLAS"):
        container_quality(scene.tlas_words)
    assert container_quality(scene.blas_words(0)).leaves == 1
