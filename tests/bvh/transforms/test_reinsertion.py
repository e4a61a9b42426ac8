import numpy as np
import pytest

from bvh.builders import BUILDERS
from bvh.gpu.reinsertion_records import CANDIDATES, MOVES, place
from bvh.sah import sah_cost
from bvh.transforms.reinsertion import (
    ReinsertionConfig,
    make_buffers,
    reinsert,
    round_parameters,
    run_round,
    run_twin,
)
from bvh.tree import EMPTY, Tree, check_tree, fit_bounds, half_area, leaf_slots

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
    """Against every possible move of every node of a small tree, carried out and measured."""
    count = 9
    for _ in range(8):
        bounds = _boxes(rng, count)
        tree = fit_bounds(_random_tree(rng, count), bounds)
        start = make_buffers(tree, bounds)
        run_round(start, CONFIG, 0)
        start["parameters"] = round_parameters(count, CONFIG, 1)
        every = np.concatenate([np.arange(count - 1), ~np.arange(count)]).astype(np.int32)
        parents = start["parents"]
        above = dict(zip(every.tolist(), parents[place(every, count - 1)].tolist(), strict=True))
        candidates = [node for node in every.tolist() if above[node] > 0]
        start["candidates"][: len(candidates)] = candidates
        start["tally"][CANDIDATES] = len(candidates)
        run_twin("search", start)
        found = start["moves"].reshape(-1, 2)[: len(candidates)].copy()
        scale = float(start["progress"]["scale"][0]) ** 2
        for slot, node in enumerate(candidates):
            best = 0.0
            for target in every.tolist():
                walk = target
                while walk not in (0, node):
                    walk = above[walk]
                if walk == node or target in (0, above[node]) or above[target] == above[node]:
                    continue
                fresh = {name: array.copy() for name, array in start.items()}
                fresh["candidates"][0] = node
                fresh["tally"][[CANDIDATES, MOVES]] = 1, 0
                fresh["moves"][:2] = np.array([target], np.int32).view(np.uint32)[0], 1
                run_twin("apply", fresh)
                moved = fit_bounds(fresh["children"].reshape(-1, 2), bounds)
                assert check_tree(moved, bounds) == []
                best = max(best, _cost_of(tree) - _cost_of(moved))
            claimed = float(found[slot, 1:].view(np.float32)[0]) / scale
            assert np.isclose(claimed, best, rtol=1e-3, atol=1e-4 * _cost_of(tree))
            assert (found[slot, 0].view(np.int32) == EMPTY) == (claimed == 0)


def test_equal_boxes_and_extreme_sizes(rng: np.random.Generator) -> None:
    same = np.zeros((300, 2, 3), np.float32)
    huge = (_boxes(rng, 300).astype(np.float64) * 1e37).astype(np.float32)
    for bounds in (same, huge):
        tree = BUILDERS[0].build(bounds, BUILDERS[0].config)
        assert check_tree(reinsert(tree, bounds, CONFIG), bounds) == []
