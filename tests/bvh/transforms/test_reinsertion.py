import numpy as np
import pytest

from bvh.builders import BUILDERS
from bvh.sah import sah_cost
from bvh.transforms.reinsertion import (
    ReinsertionConfig,
    _apply,
    _graph,
    _Moves,
    _refit,
    _search,
    reinsert,
)
from bvh.tree import Tree, check_tree, fit_bounds, half_area, leaf_slots

CONFIG = ReinsertionConfig()


def _boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    low = rng.random((count, 3))
    return np.stack([low, low + 0.1 * rng.random((count, 3)) ** 3], axis=1).astype(np.float32)


def _random_tree(rng: np.random.Generator, count: int) -> np.ndarray:
    """A bad tree: random pairs of subtrees are joined."""
    roots = [~i for i in range(count)]
    children: list[tuple[int, int]] = []
    while len(roots) > 1:
        a, b = (roots.pop(rng.integers(len(roots))) for _ in range(2))
        children.append((a, b))
        roots.append(len(children) - 1)
    flipped = np.array(children[::-1], np.int32)  # the root first
    flipped[flipped >= 0] = len(children) - 1 - flipped[flipped >= 0]
    return flipped


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6, 9, 50, 2000])
def test_sound_and_no_worse(count: int, rng: np.random.Generator) -> None:
    bounds = _boxes(rng, count)
    tree = BUILDERS[0].build(bounds, BUILDERS[0].config)
    better = reinsert(tree, bounds, CONFIG)
    assert check_tree(better, bounds) == []
    assert leaf_slots(better.children).sum() == count
    assert sah_cost(better, bounds) <= sah_cost(tree, bounds) * (1 + 1e-6)


def test_repairs_a_bad_tree(rng: np.random.Generator) -> None:
    bounds = _boxes(rng, 1000)
    bad = fit_bounds(_random_tree(rng, 1000), bounds)
    assert check_tree(bad, bounds) == []
    better = reinsert(bad, bounds, ReinsertionConfig(rounds=200, least_progress=0.0))
    assert check_tree(better, bounds) == []
    sah = BUILDERS[0].build(bounds, BUILDERS[0].config)
    assert sah_cost(better, bounds) < 0.4 * sah_cost(bad, bounds)
    assert sah_cost(better, bounds) < 1.5 * sah_cost(sah, bounds)


def _cost_of(tree: Tree) -> float:
    return float(half_area(tree.bounds).sum())


def test_one_search_finds_the_best_move_and_its_gain(rng: np.random.Generator) -> None:
    """Against every possible move of one node of a small tree, carried out and measured."""
    for _ in range(8):
        bounds = _boxes(rng, 9)
        tree = fit_bounds(_random_tree(rng, 9), bounds)
        graph = _graph(tree, bounds)
        inner = len(tree.children)
        scale = _cost_of(tree) / float(graph.area[:inner].sum())
        nodes = np.flatnonzero(graph.parent > 0).astype(np.int32)
        found = _search(graph, nodes, 1000)
        for node in nodes:
            best = 0.0
            inside = {int(node)}
            for other in range(len(graph.parent)):
                walk = other
                while walk >= 0:
                    if walk in inside:
                        inside.add(other)
                        break
                    walk = int(graph.parent[walk])
            own = int(graph.parent[node])
            for target in range(1, len(graph.parent)):
                if target in inside or target == own or int(graph.parent[target]) == own:
                    continue
                fresh = _graph(tree, bounds)
                one = np.array([node], np.int32)
                move = _Moves(one, np.array([target], np.int32), np.ones(1, np.float32))
                _refit(fresh, _apply(fresh, move))
                child = np.where(fresh.child < inner, fresh.child, ~(fresh.child - inner))
                moved = fit_bounds(child.astype(np.int32), bounds)
                assert check_tree(moved, bounds) == []
                assert np.isclose(float(fresh.area[:inner].sum()) * scale, _cost_of(moved), 1e-4)
                best = max(best, _cost_of(tree) - _cost_of(moved))
            mine = np.flatnonzero(found.node == node)
            claimed = float(found.gain[mine[0]]) * scale if len(mine) else 0.0
            assert np.isclose(claimed, best, rtol=1e-3, atol=1e-4 * _cost_of(tree))


def test_equal_boxes_and_extreme_sizes(rng: np.random.Generator) -> None:
    same = np.zeros((300, 2, 3), np.float32)
    huge = (_boxes(rng, 300).astype(np.float64) * 1e37).astype(np.float32)
    for bounds in (same, huge):
        tree = BUILDERS[0].build(bounds, BUILDERS[0].config)
        assert check_tree(reinsert(tree, bounds, CONFIG), bounds) == []
