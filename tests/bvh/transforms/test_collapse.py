import numpy as np
import pytest

from bvh.builders import BUILDERS
from bvh.sah import sah_cost
from bvh.transforms.collapse import collapse_best, collapse_greedy
from bvh.tree import EMPTY, check_tree, depth_first, fit_bounds, leaf_slots


def _binary(rng: np.random.Generator, count: int) -> tuple:
    low = rng.random((count, 3))
    bounds = np.stack([low, low + 0.1 * rng.random((count, 3))], axis=1).astype(np.float32)
    return BUILDERS[0].build(bounds, BUILDERS[0].config), bounds


@pytest.mark.parametrize("collapse", [collapse_greedy, collapse_best])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 33, 2000])
def test_sound(collapse, count: int, rng: np.random.Generator) -> None:
    binary, bounds = _binary(rng, count)
    wide = collapse(binary)
    assert wide.width == 4
    assert check_tree(wide, bounds) == []
    assert leaf_slots(wide.children).sum() == count
    # Used slots come first, and leaves keep the binary tree's left-to-right order.
    used = wide.children != EMPTY
    assert (used[:, :-1] >= used[:, 1:]).all()
    assert (depth_first(wide.children)[1] == depth_first(binary.children)[1]).all()


def test_greedy_opens_the_largest_first() -> None:
    """Root (A, B): A = (a0, a1) is small, B = (b0, C) is large, C = (c0, c1) larger than A."""
    x = [0.0, 1.0, 10.0, 20.0, 30.0]
    bounds = np.array([[[v, 0, 0], [v + 0.5, 1, 1]] for v in x], np.float32)
    binary = fit_bounds(np.array([[1, 2], [~0, ~1], [~2, 3], [~3, ~4]], np.int32), bounds)
    wide = collapse_greedy(binary)
    assert wide.children.tolist() == [[1, ~2, ~3, ~4], [~0, ~1, EMPTY, EMPTY]]


def test_best_is_never_worse_and_optimal_on_a_small_tree(rng: np.random.Generator) -> None:
    for count in (6, 9, 200):
        binary, bounds = _binary(rng, count)
        greedy, best = collapse_greedy(binary), collapse_best(binary)
        assert sah_cost(best, bounds) <= sah_cost(greedy, bounds) + 1e-9
        if count < 10:
            assert sah_cost(best, bounds) == pytest.approx(_exhaustive(binary, bounds))


def _exhaustive(binary, bounds: np.ndarray) -> float:
    """Least cost over all ways to keep or open inner nodes, at most four slots a kept node."""
    inner = len(binary.children)
    best = np.inf
    for choice in range(1 << (inner - 1)):
        kept = [True, *(bool(choice >> i & 1) for i in range(inner - 1))]
        rows: list[list[int]] = []
        for node in range(inner):
            slots: list[int] = []
            queue = list(binary.children[node]) if kept[node] else []
            while queue:
                child = int(queue.pop(0))
                if child < 0 or kept[child]:
                    slots.append(child)
                else:
                    queue = list(binary.children[child]) + queue
            rows.append(slots)
        if any(len(slots) > 4 for slots in rows):
            continue
        number = np.cumsum(kept) - 1
        children = np.full((sum(kept), 4), EMPTY, np.int32)
        for node in range(inner):
            if kept[node]:
                for slot, child in enumerate(rows[node]):
                    children[number[node], slot] = child if child < 0 else number[child]
        best = min(best, sah_cost(fit_bounds(children, bounds), bounds))
    return best
