from typing import Any

import numpy as np
import pytest

from bvh.builders.lbvh import LbvhConfig, build
from bvh.sah import sah_cost
from bvh.tree import MAX_DEPTH, check_tree, fit_bounds, tree_levels


def _boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    low = rng.random((count, 3))
    return np.stack([low, low + rng.random((count, 3)) * 0.02], axis=1).astype(np.float32)


def test_bounds_are_those_of_a_bottom_up_pass(rng: Any) -> None:
    for count in (2, 3, 64, 65, 1000):
        bounds = _boxes(rng, count)
        tree = build(bounds, LbvhConfig())
        assert np.array_equal(tree.bounds, fit_bounds(tree.children, bounds).bounds)


def test_leaves_stand_in_the_order_of_their_codes() -> None:
    """A row of boxes along one axis: the tree's left-to-right order is the row's."""
    x = np.random.default_rng(3).permutation(500).astype(np.float32)
    corners = np.stack([x, np.zeros_like(x), np.zeros_like(x)], axis=1)
    tree = build(np.stack([corners, corners], axis=1), LbvhConfig(21, 0))
    order: list[int] = []
    pending = [0]
    while pending:
        child = pending.pop()
        if child < 0:
            order.append(~child)
        else:
            pending += [int(tree.children[child, 1]), int(tree.children[child, 0])]
    assert (np.diff(x[order]) == 1).all()


def test_size_bits_part_large_from_small(rng: Any) -> None:
    """A few boxes as large as everything among thousands of small ones."""
    bounds = _boxes(rng, 4000)
    bounds[::100, 1] += 0.5
    plain = sah_cost(build(bounds, LbvhConfig(18, 0)), bounds)
    extended = sah_cost(build(bounds, LbvhConfig(18, 8)), bounds)
    assert extended < 0.85 * plain


@pytest.mark.parametrize("max_depth", [12, 16, 48])
def test_depth_limit(rng: Any, max_depth: int) -> None:
    """4000 boxes fit into 12 levels only where no code is looked at."""
    bounds = _boxes(rng, 4000) ** 8
    config = LbvhConfig(max_depth=max_depth)
    tree = build(bounds, config)
    assert check_tree(tree, bounds) == []
    assert len(tree_levels(tree.children)) <= max_depth <= MAX_DEPTH


@pytest.mark.parametrize("code", [(22, 0), (4, 5), (0, 0), (20, 4), (5, -1)])
def test_refuses_codes_that_no_key_holds(code: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="bits"):
        LbvhConfig(*code)
