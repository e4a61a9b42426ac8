from typing import Any

import numpy as np
import pytest

from bvh.builders import binned_sah
from bvh.builders.lbvh import LbvhConfig
from bvh.builders.lbvh import build as build_lbvh
from bvh.builders.ploc import PlocConfig, build
from bvh.gpu.ploc_stages import CHUNK, dispatches
from bvh.sah import sah_cost
from bvh.tree import MAX_DEPTH, check_tree, fit_bounds, tree_levels


def _boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    low = rng.random((count, 3))
    return np.stack([low, low + rng.random((count, 3)) * 0.02], axis=1).astype(np.float32)


def test_merges_the_nearest_first() -> None:
    """Four boxes in a row, the middle two close together: they are one node's children."""
    x = np.array([0.0, 10, 11, 30], np.float32)
    corners = np.stack([x, np.zeros_like(x), np.zeros_like(x)], axis=1)
    tree = build(np.stack([corners, corners + 1], axis=1), PlocConfig())
    assert sorted(map(sorted, tree.children.tolist())) == [[~3, 2], [~2, ~1], [~0, 1]]


def test_bounds_are_those_of_a_bottom_up_pass(rng: Any) -> None:
    for count in (2, 3, 255, 257, 1000):
        bounds = _boxes(rng, count)
        tree = build(bounds, PlocConfig())
        assert np.array_equal(tree.bounds, fit_bounds(tree.children, bounds).bounds)


def test_better_than_lbvh_and_near_sah(rng: Any) -> None:
    centre = (
        rng.random((300, 3))[rng.integers(0, 300, 10_000)] + rng.normal(size=(10_000, 3)) * 0.01
    )
    size = 10.0 ** rng.uniform(-3.5, -1.5, (10_000, 1))
    bounds = np.stack([centre - size, centre + size], axis=1).astype(np.float32)
    lbvh = sah_cost(build_lbvh(bounds, LbvhConfig()), bounds)
    sah = sah_cost(binned_sah.build(bounds, binned_sah.BinnedSahConfig()), bounds)
    narrow, wide = (sah_cost(build(bounds, PlocConfig(r)), bounds) for r in (8, 16))
    assert wide < 1.01 * narrow < 0.9 * lbvh
    assert wide < 1.1 * sah


@pytest.mark.parametrize("count", [300, 5000])
def test_one_merge_a_round_ends_within_the_depth(count: int) -> None:
    """Boxes that lie in each other: the searches of all dispatches leave most of them."""
    size = np.linspace(0.1, 1.0, count, dtype=np.float32)[:, None]
    bounds = np.stack([np.repeat(-size, 3, 1), np.repeat(size, 3, 1)], axis=1)
    tree = build(bounds, PlocConfig(4))
    assert check_tree(tree, bounds) == []
    assert len(tree_levels(tree.children)) <= MAX_DEPTH


def test_dispatches_follow_the_count() -> None:
    assert dispatches(0) == dispatches(1) == dispatches(CHUNK) == [False]
    assert dispatches(CHUNK + 1) == [False] * 3 + [True, False]
    assert dispatches(540_000) == [False] * 14 + [True] * 2 + [False]


@pytest.mark.parametrize("config", [(0,), (17,), (8, 22, 0), (8, 4, 5), (8, 0, 0), (8, 20, 4)])
def test_refuses_what_no_kernel_holds(config: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="radius|bits"):
        PlocConfig(*config)
