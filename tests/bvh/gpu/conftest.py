"""Binary trees of every shape and numbering, for stages that take any builder's tree; stages
against their twins."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bvh.gpu.build_records import BUILD_STATE
from bvh.tree import EMPTY, MAX_DEPTH, Tree, empty_bounds, fit_bounds
from engine.gpu.stage import Stage

SHAPES = ("even", "random", "skewed", "chain")


def make_tree(
    rng: np.random.Generator, count: int, shape: str, *, whole: bool = False
) -> tuple[Tree, np.ndarray]:
    """A tree of MAX_DEPTH levels at most over `count` random boxes, its inner nodes (but for the
    root) and its leaves numbered at random; and the boxes. `whole`: of integers up to 12."""
    low = rng.random((count, 3))
    size = 10.0 ** rng.uniform(-4, -0.5, (count, 1)) * rng.random((count, 3))
    if whole:
        low, size = rng.integers(0, 10, (2, count, 3))
        size = size % 3
    boxes = np.stack([low, low + size], axis=1).astype(np.float32)
    if count < 2:
        children = np.full((1, 2), EMPTY, np.int32)
        children[0, :count] = ~0
        return fit_bounds(children, boxes) if count else Tree(children, empty_bounds(1)), boxes
    leaves = rng.permutation(count)
    names = np.concatenate([[0], 1 + rng.permutation(count - 2)])
    children = np.empty((count - 1, 2), np.int32)
    used, todo = 1, [(0, 0, count, 0)]
    while todo:
        node, first, last, depth = todo.pop()
        most = 2 ** (MAX_DEPTH - 1 - depth)  # leaves that fit below one child
        span = last - first
        share = {"even": 0.5, "random": rng.random(), "skewed": rng.random() ** 4, "chain": 0.0}
        left = int(share[shape] * span)
        if rng.random() < 0.5:
            left = span - left
        left = min(max(left, 1, span - most), span - 1, most)
        for side, (a, b) in enumerate(((first, first + left), (first + left, last))):
            if b - a == 1:
                children[names[node], side] = ~leaves[a]
                continue
            children[names[node], side] = names[used]
            todo.append((used, a, b, depth + 1))
            used += 1
    return fit_bounds(children, boxes), boxes


def tree_arrays(tree: Tree, count: int) -> dict[str, Any]:
    """The tree as a builder's buffers hold it."""
    state = np.zeros(1, BUILD_STATE.dtype)
    state["kept"] = count
    bounds = tree.bounds if count else np.zeros((1, 2, 3), np.float32)
    return {
        "state": state,
        "children": np.ascontiguousarray(tree.children).reshape(-1),
        "bounds": np.ascontiguousarray(bounds, np.float32).reshape(-1),
    }


def run_both(
    stage: Stage, arrays: dict[str, Any], groups: int, outputs: str = "", *, by_value: bool = False
) -> None:
    """Runs stage and twin over the same arrays. Of `outputs` (names, by default whatever can be
    written) every field is equal, bit for bit or, `by_value`, with no sign of zero; the twin's
    results go on in `arrays`."""
    buffers = {}
    for b in stage.bindings:
        usage = "UNIFORM|COPY_DST" if b.space == "uniform" else "STORAGE|COPY_SRC|COPY_DST"
        buffers[b.name] = stage.device.upload(b.name, arrays[b.name], usage)
    stage.run(buffers, groups)
    stage.run_cpu(arrays)
    writable = [b.name for b in stage.bindings if "read_write" in b.space]
    for name in outputs.split() or writable:
        expected = np.ascontiguousarray(arrays[name])
        got = stage.device.read(buffers[name], expected.dtype, count=len(expected))
        for field in expected.dtype.names or [...]:
            pair = got[field], expected[field]
            same = pair[0].tobytes() == pair[1].tobytes() or (by_value and np.array_equal(*pair))
            assert same, f"{stage.name}: {name}" + (f".{field}" if field is not ... else "")


@pytest.fixture(scope="session")
def same_as_twin() -> Callable[..., None]:
    """`run_both`."""
    return run_both


@pytest.fixture(scope="session")
def binary_tree() -> Callable[..., tuple[Tree, np.ndarray]]:
    """`make_tree`."""
    return make_tree


@pytest.fixture(scope="session")
def as_arrays() -> Callable[..., dict[str, Any]]:
    """`tree_arrays`."""
    return tree_arrays
