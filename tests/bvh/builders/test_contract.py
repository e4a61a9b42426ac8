"""What every builder owes, on inputs that break careless ones."""

import numpy as np
import pytest

from bvh import oracle
from bvh.brute_force import closest
from bvh.build import BuildOptions, build_blas
from bvh.builders import BUILDERS, Builder
from bvh.rays import make_rays
from bvh.sah import sah_cost
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.tree import EMPTY, MAX_DEPTH, check_tree, leaf_slots, tree_levels
from bvh.validate import validate

each_builder = pytest.mark.parametrize("builder", BUILDERS, ids=lambda b: b.name)


def _boxes(rng: np.random.Generator, count: int, size: float) -> np.ndarray:
    low = rng.random((count, 3))
    return np.stack([low, low + rng.random((count, 3)) * size], axis=1).astype(np.float32)


def _tower(count: int) -> np.ndarray:
    """Boxes whose sizes and places grow geometrically: SAH peels them off one by one."""
    x = np.ldexp(1.0, np.linspace(-110, 110, count).astype(int)).astype(np.float32)
    return np.stack([np.stack([x, x, x], 1), np.stack([x, x, x], 1) * np.float32(1.5)], 1)


@each_builder
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 16, 17, 18, 100, 3000])
def test_sound_on_random_boxes(builder: Builder, count: int, rng: np.random.Generator) -> None:
    bounds = _boxes(rng, count, 0.05)
    tree = builder.build(bounds, builder.config)
    assert check_tree(tree, bounds) == []
    assert leaf_slots(tree.children).sum() == count
    if count >= 2:
        assert (tree.children != EMPTY).all()


@each_builder
def test_equal_centroids_split_evenly(builder: Builder) -> None:
    bounds = np.zeros((4096, 2, 3), np.float32)
    bounds[:, 1] = 1.0
    tree = builder.build(bounds, builder.config)
    assert check_tree(tree, bounds) == []
    assert len(tree_levels(tree.children)) == 12
    nested = np.linspace(0.1, 1.0, 500, dtype=np.float32)[:, None]
    bounds = np.stack([np.repeat(-nested, 3, 1), np.repeat(nested, 3, 1)], axis=1)
    tree = builder.build(bounds, builder.config)
    assert check_tree(tree, bounds) == []
    # Merging bottom up chains boxes that lie in each other: each union is the larger box's area.
    most = MAX_DEPTH if builder.name == "ploc" else 16
    assert len(tree_levels(tree.children)) <= most


@each_builder
def test_depth_is_bounded_on_a_tower(builder: Builder) -> None:
    bounds = _tower(5000)
    tree = builder.build(bounds, builder.config)
    assert check_tree(tree, bounds) == []
    assert len(tree_levels(tree.children)) <= MAX_DEPTH


@each_builder
def test_extreme_coordinates(builder: Builder, rng: np.random.Generator) -> None:
    for scale in (1e-38, 1e30, 3e38):
        bounds = _boxes(rng, 300, 0.1)
        bounds = np.sort(np.clip(bounds.astype(np.float64), 0, 1) * scale, axis=1)
        bounds = bounds.astype(np.float32)
        tree = builder.build(bounds, builder.config)
        assert check_tree(tree, bounds) == []
    flat = _boxes(rng, 300, 0.1)
    flat[:, :, 1] = 7.0
    assert check_tree(builder.build(flat, builder.config), flat) == []


@each_builder
def test_beats_a_median_split(builder: Builder, rng: np.random.Generator) -> None:
    """Tiny boxes in clusters, with a few that span everything."""
    centre = rng.random((40, 3))[rng.integers(0, 40, 4000)] + rng.normal(size=(4000, 3)) * 0.01
    size = np.where(rng.random(4000) < 0.01, 0.5, 0.002)[:, None]
    bounds = np.stack([centre - size, centre + size], axis=1).astype(np.float32)
    tree = builder.build(bounds, builder.config)
    order = np.argsort(bounds[:, 0, 0])
    median = _median_tree(order)
    from bvh.tree import fit_bounds

    assert sah_cost(tree, bounds) < 0.7 * sah_cost(fit_bounds(median, bounds), bounds)


def _median_tree(order: np.ndarray) -> np.ndarray:
    children: list[list[int]] = []

    def split(part: np.ndarray) -> int:
        if len(part) == 1:
            return ~int(part[0])
        node = len(children)
        children.append([0, 0])
        half = len(part) // 2
        children[node] = [split(part[:half]), split(part[half:])]
        return node

    split(order)
    return np.array(children, np.int32)


@each_builder
def test_same_input_same_tree(builder: Builder, rng: np.random.Generator) -> None:
    bounds = _boxes(rng, 1000, 0.1)
    first = builder.build(bounds, builder.config)
    second = builder.build(bounds.copy(), builder.config)
    assert (first.children == second.children).all()


@pytest.mark.parametrize("builder", ["lbvh", "ploc"])
@pytest.mark.parametrize("leaf", [1, 2])
@pytest.mark.parametrize("nodes", ["fp16", "fp32", "auto"])
@pytest.mark.parametrize("reinsertion", [0, 5])
def test_hits_equal_brute_force(
    rng: np.random.Generator, builder: str, leaf: int, nodes: str, reinsertion: int
) -> None:
    """The whole way to guest bytes; the structure is valid and finds what a search finds."""
    centre = rng.random((600, 1, 3)) * 4
    triangles = (centre + 0.3 * rng.normal(size=(600, 3, 3))).astype(np.float32)
    options = BuildOptions(builder=builder, leaf=leaf, nodes=nodes, reinsertion=reinsertion)
    every = np.arange(600, dtype=np.uint32)
    blas = build_blas(triangles, np.zeros(600, np.uint32), every, np.ones(1, np.bool_), options)
    scene = assemble([blas], ["mesh"], [BvhInstance(0, np.eye(4))])
    assert validate(scene) == []
    rays = make_rays(rng.random((400, 3)) * 4, rng.normal(size=(400, 3)))
    expected = closest(triangles, rays)
    got = oracle.trace(scene.words, rays)
    assert 100 < np.isfinite(expected.t).sum() < 400
    assert (np.isfinite(got.t) == np.isfinite(expected.t)).all()
    hit = np.isfinite(expected.t)
    assert np.allclose(got.t[hit], expected.t[hit], rtol=1e-4)
    other = got.primitive[hit] != expected.triangle[hit]
    assert np.allclose(got.t[hit][other], expected.t[hit][other], rtol=1e-6)
