"""The children of a wide node in the order of their heaviest primitives."""

import numpy as np

from bvh.build import BuildOptions, build_tree
from bvh.transforms.slot_order import heaviest_first
from bvh.tree import EMPTY, Tree, empty_bounds


def test_the_heaviest_below_decides_and_empty_slots_are_last() -> None:
    children = np.array([[~0, EMPTY, 1, ~1], [~2, ~3, EMPTY, ~4]], np.int32)
    found = heaviest_first(Tree(children, empty_bounds(2)), np.array([2, 3, 1, 5, 4]))
    assert found.children.tolist() == [[1, ~1, ~0, EMPTY], [~3, ~4, ~2, EMPTY]]
    assert children[0].tolist() == [~0, EMPTY, 1, ~1]  # the given one stays


def test_equal_ones_keep_their_order() -> None:
    tree = Tree(np.array([[~2, ~0, EMPTY, ~1]], np.int32), empty_bounds(1))
    assert heaviest_first(tree, np.zeros(3, int)).children.tolist() == [[~2, ~0, ~1, EMPTY]]


def test_a_tree_of_nothing_and_a_whole_one(rng: np.random.Generator) -> None:
    nothing = Tree(np.full((1, 4), EMPTY, np.int32), empty_bounds(1))
    assert (heaviest_first(nothing, np.zeros(0, int)).children == EMPTY).all()
    low = rng.uniform(-10, 10, (200, 3))
    boxes = np.stack([low, low + rng.uniform(0.1, 8, (200, 3))], axis=1).astype(np.float32)
    tree, weights = build_tree(boxes, BuildOptions()), rng.permutation(200)
    found = heaviest_first(tree, weights)
    np.testing.assert_array_equal(np.sort(found.children, axis=1), np.sort(tree.children, axis=1))
    at = 0  # the way of first children ends at the heaviest of all
    while at >= 0:
        at = int(found.children[at, 0])
    assert ~at == weights.argmax()
