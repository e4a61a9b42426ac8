import numpy as np
import pytest

from bvh.sah import INTERSECTION_COST, TRAVERSAL_COST, sah_cost
from bvh.tree import EMPTY, fit_bounds

BOUNDS = np.array([[[x, 0, 0], [x + 1, 1, 1]] for x in (0, 2, 5)], np.float32)


def test_by_hand() -> None:
    """Half areas: root 6x1x1 = 13, inner 3x1x1 = 7, cubes 3 each."""
    tree = fit_bounds(np.array([[1, ~2], [~0, ~1]], np.int32), BOUNDS)
    assert (TRAVERSAL_COST, INTERSECTION_COST) == (1.0, 1.0)
    assert sah_cost(tree, BOUNDS) == pytest.approx((13 + 7 + 3 * 3) / 13)
    cost = sah_cost(tree, BOUNDS, traversal_cost=2.0, intersection_cost=0.5)
    assert cost == pytest.approx((2 * 20 + 0.5 * 9) / 13)


def test_four_wide() -> None:
    tree = fit_bounds(np.array([[~0, ~1, ~2, EMPTY]], np.int32), BOUNDS)
    assert sah_cost(tree, BOUNDS) == pytest.approx((13 + 9) / 13)


def test_empty_and_flat() -> None:
    nothing = np.empty((0, 2, 3), np.float32)
    assert sah_cost(fit_bounds(np.full((1, 4), EMPTY, np.int32), nothing), nothing) == 0
    point = np.zeros((2, 2, 3), np.float32)
    assert sah_cost(fit_bounds(np.array([[~0, ~1]], np.int32), point), point) == 3
