from typing import Any

import numpy as np
import pytest

from bvh.gpu.tree_order import TreeOrder
from bvh.gpu.tree_order_records import DEPTH_SHIFT, NO_PARENT, RIGHT_CHILD
from bvh.tree import MAX_DEPTH, Tree, depth_first, leaf_slots, stack_bound, tree_levels
from engine.gpu.stage import submit_pass

CAPACITY = 5000
COUNTS = [0, 1, 2, 3, 5, 64, 257, 258, 2049, CAPACITY]
DTYPES = {"children": np.int32, "bounds": np.float32, "costs": np.float32}


@pytest.fixture(scope="module", params=[1, 4, 8])
def order(device: Any, request: Any) -> TreeOrder:
    """For the whole file: every use after the first finds dirty buffers."""
    return TreeOrder(device, CAPACITY, request.param)


def _run(order: TreeOrder, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    """Every buffer after `encode`."""
    device = order.device
    buffers = {name: device.upload(name, array) for name, array in arrays.items()}
    submit_pass(device, lambda scope: order.encode(scope, buffers))
    return {
        name: device.read(buffer, DTYPES.get(name, np.uint32))
        for name, buffer in {**order.buffers, **order._scratch}.items()
    }


def _check(found: dict[str, np.ndarray], tree: Tree, count: int) -> None:
    """Against walks over the host's tree."""
    nodes = len(tree.children)
    levels = tree_levels(tree.children)
    starts = found["level_starts"]
    assert (np.diff(starts[: len(levels) + 1]) == [len(level) for level in levels]).all()
    assert (starts[len(levels) :] == nodes).all()
    depth = np.empty(nodes, np.int64)
    height = np.zeros(nodes, np.int64)
    for index, level in enumerate(levels):
        part = found["level_nodes"][starts[index] : starts[index + 1]]
        assert (part == np.sort(level)).all()
        depth[level] = index
    for level in reversed(levels):
        below = tree.children[level]
        height[level] = 1 + np.where(below >= 0, height[np.maximum(below, 0)], 0).max(axis=1)
    assert (found["heights"][:nodes] == height).all()
    assert (found["paths"][1 : 2 * nodes : 2] >> DEPTH_SHIFT == depth).all()
    assert found["parents"][0] == NO_PARENT
    for side in (0, 1):
        inner = np.flatnonzero(tree.children[:, side] >= 0)
        link = found["parents"][tree.children[inner, side]]
        assert (link & (RIGHT_CHILD - 1) == inner).all()
        assert (link >> 31 == side).all()
    _, leaf_rank = depth_first(tree.children)
    assert (found["leaf_order"][leaf_rank] == np.arange(count)).all()
    first, last = np.full(nodes, count), np.full(nodes, -1)
    for level in reversed(levels):
        for side in (0, 1):
            slots = tree.children[level, side]
            leaf = leaf_slots(slots)
            inner = slots >= 0
            a, b = (
                np.where(inner, x[np.maximum(slots, 0)], y) for x, y in ((first, count), (last, -1))
            )
            a[leaf] = b[leaf] = leaf_rank[~slots[leaf]]
            first[level], last[level] = np.minimum(first[level], a), np.maximum(last[level], b)
    if count:
        assert (found["ranges"][: 2 * nodes].reshape(-1, 2) == np.stack([first, last], 1)).all()


def _run_twins(order: TreeOrder, arrays: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The stages in the order that `encode` dispatches them, over arrays of the buffers' sizes."""
    twins = {name: np.full_like(a, 0xEE) for name, a in found.items()}
    twins |= arrays | {"offsets": twins["counts"]}
    twins["parameters"] = _tiled(order)
    for name in ("tree_parents", "node_paths", "place_digits", "level_nodes"):
        order.stages[name].run_cpu(twins)
    for level in reversed(range(0, MAX_DEPTH, order.strip)):
        twins["parameters"] = np.array([level, order.strip, 0, 0], np.uint32)
        order.stages["subtrees"].run_cpu(twins)
    order.stages["leaf_ranges"].run_cpu(twins)
    return twins


def _tiled(order: TreeOrder) -> np.ndarray:
    return np.array([order.nodes, 0, 0, order._tiles], np.uint32)


@pytest.mark.parametrize("count", COUNTS)
def test_any_tree_and_twins(
    order: TreeOrder, binary_tree: Any, as_arrays: Any, rng: Any, count: int
) -> None:
    for shape in ("even", "random", "skewed", "chain"):
        tree, _ = binary_tree(rng, count, shape)
        arrays = as_arrays(tree, count)
        found = _run(order, arrays)
        _check(found, tree, count)
        twins = _run_twins(order, arrays, found)
        nodes = len(tree.children)
        roots = found["level_nodes"][:nodes]
        roots = roots[(found["paths"][1::2][roots] >> DEPTH_SHIFT) % order.strip == 0]
        sizes = {"level_starts": 64, "leaf_order": count, "counts": 64 * order._tiles}
        for name, array in found.items():
            if name in ("costs", "totals", "offsets"):
                continue
            size = sizes.get(name, nodes * (len(array) // order.nodes))
            assert (array[:size] == twins[name][:size]).all(), name
        costs = [a["costs"][: 3 * order.nodes].reshape(-1, 3)[roots] for a in (found, twins)]
        assert (costs[0] == costs[1]).all()
        if count >= 2049 and shape == "chain":
            assert len(tree_levels(tree.children)) == MAX_DEPTH
            assert stack_bound(tree.children) > 20


def test_repeats_are_equal(order: TreeOrder, binary_tree: Any, as_arrays: Any, rng: Any) -> None:
    tree, _ = binary_tree(rng, CAPACITY, "random")
    arrays = as_arrays(tree, CAPACITY)
    first, second = _run(order, arrays), _run(order, arrays)
    assert all((first[name] == second[name]).all() for name in order.buffers)


def test_more_leaves_than_there_is_room_for(
    device: Any, binary_tree: Any, as_arrays: Any, rng: Any
) -> None:
    """What a builder never hands over: nothing is found, but everything ends, and the next tree is
    ordered as ever."""
    order = TreeOrder(device, 100)
    _run(order, as_arrays(binary_tree(rng, CAPACITY, "random")[0], CAPACITY))
    tree, _ = binary_tree(rng, 100, "random")
    _check(_run(order, as_arrays(tree, 100)), tree, 100)


def test_strips_that_do_not_exist(device: Any) -> None:
    for strip in (-1, 9):
        with pytest.raises(ValueError, match="strip"):
            TreeOrder(device, 10, strip)
