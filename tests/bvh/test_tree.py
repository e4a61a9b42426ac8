import numpy as np
import pytest

from bvh.tree import (
    EMPTY,
    Tree,
    check_tree,
    depth_first,
    fit_bounds,
    half_area,
    stack_bound,
    tree_levels,
)

# Three unit cubes along x under a root and one inner node.
BOUNDS = np.array([[[x, 0, 0], [x + 1, 1, 1]] for x in (0, 2, 5)], np.float32)
CHILDREN = np.array([[1, ~2], [~0, ~1]], np.int32)


def test_fit_bounds_and_check() -> None:
    tree = fit_bounds(CHILDREN, BOUNDS)
    assert tree.bounds.tolist() == [[[0, 0, 0], [6, 1, 1]], [[0, 0, 0], [3, 1, 1]]]
    assert check_tree(tree, BOUNDS) == []
    assert tree.width == 2


def test_half_area() -> None:
    assert half_area(np.array([[0, 0, 0], [1, 2, 3]], np.float32)) == 11
    assert half_area(np.array([[np.inf] * 3, [-np.inf] * 3], np.float32)) == 0
    assert half_area(np.array([[-1e38] * 3, [1e38] * 3], np.float32)) == pytest.approx(1.2e77)


def test_check_names_what_is_wrong() -> None:
    tree = fit_bounds(CHILDREN, BOUNDS)
    twice = CHILDREN.copy()
    twice[1, 1] = ~0
    faults = check_tree(Tree(twice, tree.bounds), BOUNDS)
    assert any("primitive 0 is in 2 leaves" in fault for fault in faults)
    assert any("primitive 1 is in 0 leaves" in fault for fault in faults)
    small = tree.bounds.copy()
    small[1, 1, 0] = np.nextafter(np.float32(3), np.float32(0))
    assert check_tree(Tree(CHILDREN, small), BOUNDS) == ["node 1 does not enclose its children"]
    cycle = np.array([[1, ~2], [0, ~1]], np.int32)
    assert check_tree(Tree(cycle, tree.bounds), BOUNDS) == ["an inner node has two parents"]
    outside = np.array([[7, ~2], [~0, ~1]], np.int32)
    assert "child index 7" in check_tree(Tree(outside, tree.bounds), BOUNDS)[0]
    lost = np.array([[~0, ~2], [~1, EMPTY]], np.int32)
    assert "1 inner nodes cannot be reached" in check_tree(Tree(lost, tree.bounds), BOUNDS)[0]


def test_depth_first_ranks() -> None:
    children = np.array(
        [[~4, 2, 1, EMPTY], [~0, ~1, EMPTY, EMPTY], [3, ~2, EMPTY, EMPTY], [~3, ~5, EMPTY, EMPTY]],
        np.int32,
    )
    inner, leaf = depth_first(children)
    assert inner.tolist() == [0, 3, 1, 2]  # root, 2, 3, 1
    assert leaf.tolist() == [4, 5, 3, 1, 0, 2]  # walk order 4, 3, 5, 2, 0, 1
    assert [level.tolist() for level in tree_levels(children)] == [[0], [2, 1], [3]]


def test_empty_tree() -> None:
    children = np.full((1, 4), EMPTY, np.int32)
    tree = fit_bounds(children, np.empty((0, 2, 3), np.float32))
    assert np.isposinf(tree.bounds[0, 0]).all()
    assert check_tree(tree, np.empty((0, 2, 3), np.float32)) == []
    inner, leaf = depth_first(children)
    assert inner.tolist() == [0]
    assert len(leaf) == 0


def test_stack_bound() -> None:
    children = np.array(
        [[~0, 1, ~1, ~2], [2, ~3, ~4, EMPTY], [~5, ~6, ~7, ~8]],
        np.int32,
    )
    assert stack_bound(children) == 3 + 2 + 4  # siblings left at two levels, then four children
    assert stack_bound(np.full((1, 4), EMPTY, np.int32)) == 0
