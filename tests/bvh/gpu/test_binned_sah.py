"""Every stage of the binned SAH build against its twin, and what the trees owe."""

from typing import Any

import numpy as np
import pytest

from bvh.builders.binned_sah import BinnedSahConfig
from bvh.builders.binned_sah import build as build_on_cpu
from bvh.gpu.binned_sah import (
    LEVEL_STAGES,
    GpuBinnedSah,
    build_by_twins,
    level_names,
    make_arrays,
    make_parameters,
    run_twin,
)
from bvh.gpu.binned_sah_records import (
    HALVED,
    SWEEP,
    level_count,
    most_below,
    ordered,
    value_of,
)
from bvh.sah import sah_cost
from bvh.transforms.collapse import collapse_best
from bvh.tree import EMPTY, Tree, check_tree, depth_first, fit_bounds, tree_levels
from engine.gpu.errors import LimitError

CAPACITY = 6000


@pytest.fixture(scope="module")
def builder(device: Any) -> GpuBinnedSah:
    """For the whole file: every use after the first finds dirty scratch."""
    return GpuBinnedSah(device, CAPACITY)


def _boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    low = rng.random((count, 3)) * [8, 3, 1] - 2
    size = 10.0 ** rng.uniform(-4, -0.3, (count, 1)) * rng.random((count, 3))
    return np.stack([low, low + size], axis=1).astype(np.float32)


def _strip(count: int) -> np.ndarray:
    """A million long and a millionth wide, in pieces."""
    x = np.linspace(0, 1e6, count + 1)
    bounds = np.zeros((count, 2, 3), np.float32)
    bounds[:, 0, 0], bounds[:, 1, 0], bounds[:, 1, 1:] = x[:-1], x[1:], 1e-6
    return bounds


def _tower(count: int) -> np.ndarray:
    """Sizes and places grow geometrically: SAH peels boxes off one by one."""
    x = np.ldexp(1.0, np.linspace(-60, 60, count).astype(int)).astype(np.float32)
    return np.stack([np.stack([x, x, x], 1), np.stack([x, x, x], 1) * np.float32(1.5)], 1)


def _same_tree(a: Tree, b: Tree) -> bool:
    return np.array_equal(a.children, b.children) and np.array_equal(
        a.bounds.view(np.uint32), b.bounds.view(np.uint32)
    )


@pytest.mark.parametrize("count", [0, 1, 2, SWEEP, SWEEP + 1, 257, 3001])
def test_stages_equal_their_twins(builder: Any, rng: Any, count: int, same_as_twin: Any) -> None:
    """Level by level; three groups where the stage strides, so that each takes several turns."""
    config = BinnedSahConfig(free_levels=2)
    arrays = make_arrays(_boxes(rng, count), max(count, 1))
    for name in ("bins", "heads", "splits", "children", "extents_0", "extents_1"):
        arrays[name].view(np.uint8)[:] = 77  # the last build's leavings
    levels = level_count(count, config.free_levels, config.max_depth)
    named = level_names(arrays, 0)
    named["parameters"] = make_parameters(0, levels, config.max_depth)
    same_as_twin(builder.stages["sah_clear"], named, 3)
    same_as_twin(builder.stages["sah_start"], named, 3)
    for level in range(levels):
        named = level_names(arrays, level)
        named["parameters"] = make_parameters(level, levels, config.max_depth)
        for name in LEVEL_STAGES:
            same_as_twin(builder.stages[name], named, 1 if name == "sah_list" else 3)
    named = level_names(arrays, 0)
    named["parameters"] = make_parameters(0, levels, config.max_depth)
    same_as_twin(builder.stages["sah_sweep"], named, 1 + count // SWEEP)
    assert levels == 0 or named["nodes"]["first"][0] == 0


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 128, 129, 1000, CAPACITY])
def test_tree_is_that_of_the_twins(builder: Any, rng: Any, count: int) -> None:
    bounds = _boxes(rng, count)
    tree = builder.build_boxes(bounds)
    assert _same_tree(tree, build_by_twins(bounds, BinnedSahConfig(), CAPACITY))
    assert check_tree(tree, bounds) == []
    if count:
        assert np.array_equal(tree.bounds, fit_bounds(tree.children, bounds).bounds)
        assert (depth_first(tree.children)[0] == np.arange(len(tree.children))).all()
    if count > 1:
        assert (tree.children != EMPTY).all()


@pytest.mark.parametrize("seed", range(3))
def test_as_cheap_as_the_build_on_the_cpu(seed: int) -> None:
    bounds = _boxes(np.random.default_rng(seed), 4000)
    ours, reference = (
        build_by_twins(bounds, BinnedSahConfig()),
        build_on_cpu(bounds, BinnedSahConfig()),
    )
    assert sah_cost(ours, bounds) < 1.02 * sah_cost(reference, bounds)
    wide, wide_reference = collapse_best(ours), collapse_best(reference)
    assert sah_cost(wide, bounds) < 1.02 * sah_cost(wide_reference, bounds)


@pytest.mark.parametrize("kind", ["equal", "plane", "strip", "tower", "nested", "huge", "zeros"])
def test_awkward_boxes(builder: Any, rng: Any, kind: str) -> None:
    """Each ends in a sound tree within the depth, equal to the twins'."""
    bounds = _boxes(rng, 3000)
    if kind == "equal":
        bounds[:] = bounds[0]
    elif kind == "plane":
        bounds[:, :, 1] = -7
    elif kind == "strip":
        bounds = _strip(3000)
    elif kind == "tower":
        bounds = _tower(3000)
    elif kind == "nested":
        reach = np.linspace(0.1, 1.0, 3000, dtype=np.float32)[:, None]
        bounds = np.stack([np.repeat(-reach, 3, 1), np.repeat(reach, 3, 1)], axis=1)
    elif kind == "huge":
        bounds = (bounds / np.abs(bounds).max() * np.float32(3.3e38)).astype(np.float32)
    elif kind == "zeros":
        bounds = np.where(rng.random((3000, 2, 3)) < 0.5, 0.0, -0.0).astype(np.float32)
    tree = builder.build_boxes(bounds)
    assert check_tree(tree, bounds) == []
    assert len(tree_levels(tree.children)) <= 48
    assert _same_tree(tree, build_by_twins(bounds, BinnedSahConfig(), CAPACITY))


@pytest.mark.parametrize(("free_levels", "max_depth"), [(0, 48), (3, 48), (12, 14), (0, 13)])
def test_a_tower_keeps_to_the_levels(free_levels: int, max_depth: int) -> None:
    """What SAH would peel off is cut into halves as soon as the levels say so: 5000 boxes need 13
    levels."""
    bounds = _tower(5000)
    tree = build_by_twins(bounds, BinnedSahConfig(free_levels=free_levels, max_depth=max_depth))
    assert check_tree(tree, bounds) == []
    assert len(tree_levels(tree.children)) <= max_depth


def test_equal_boxes_are_halved(rng: Any) -> None:
    bounds = np.tile(_boxes(rng, 1), (4096, 1, 1))
    arrays = make_arrays(bounds, 4096)
    named = level_names(arrays, 0)
    named["parameters"] = make_parameters(0, 5, 48)
    for name in ("sah_clear", "sah_start", "sah_bin", "sah_choose"):
        run_twin(name, named)
    assert (arrays["splits"]["axis"][0], arrays["splits"]["left_count"][0]) == (HALVED, 2048)
    assert len(tree_levels(build_by_twins(bounds, BinnedSahConfig()).children)) == 12


def test_first_cut_is_the_cheapest_between_bins(rng: Any) -> None:
    """Two clusters along y, 300 and 200 boxes."""
    bounds = _boxes(rng, 500)
    bounds[200:, :, 1] += 50
    tree = build_by_twins(bounds, BinnedSahConfig())
    assert tree.children[0].tolist() == [1, 200]


def test_small_nodes_get_the_cheapest_cut(rng: Any) -> None:
    for count in (2, 3, 7, 40):
        bounds = _boxes(rng, count)
        tree = build_by_twins(bounds, BinnedSahConfig())
        best = np.inf
        for axis in range(3):
            order = np.argsort(bounds[:, :, axis].sum(axis=1), kind="stable")
            for cut in range(1, count):
                parts = (bounds[order[:cut]], bounds[order[cut:]])
                best = min(best, sum(_area_times_count(part) for part in parts))
        left = int(tree.children[0, 1]) if tree.children[0, 1] >= 0 else count - 1
        order = _leaf_order(tree)
        cost = sum(_area_times_count(bounds[part]) for part in (order[:left], order[left:]))
        assert np.isclose(cost, best, rtol=1e-5)


def _area_times_count(boxes: np.ndarray) -> float:
    x, y, z = boxes[:, 1].max(axis=0).astype(np.float64) - boxes[:, 0].min(axis=0)
    return float(x * y + y * z + z * x) * len(boxes)


def _leaf_order(tree: Tree) -> np.ndarray:
    rank = depth_first(tree.children)[1]
    return np.argsort(rank)


def test_ordered_codes_sort_as_numbers(rng: Any) -> None:
    values = np.sort(rng.normal(size=200).astype(np.float32))
    values = np.concatenate([[-np.finfo(np.float32).max], values, [0.0, 3e38]]).astype(np.float32)
    codes = ordered(np.sort(values))
    assert (np.diff(codes.astype(np.int64)) >= 0).all()
    assert np.array_equal(value_of(ordered(values)), values)
    assert ordered(np.float32(-0.0)) < ordered(np.float32(0.0))
    assert most_below(47, 48) == 2 and most_below(48, 48) == 1


def test_same_input_same_bytes(builder: Any, rng: Any) -> None:
    bounds = _boxes(rng, 4000)
    first = builder.build_boxes(bounds)
    builder.build_boxes(_boxes(rng, 5500))
    assert _same_tree(first, builder.build_boxes(bounds))


def test_refuses_what_no_binding_holds(device: Any) -> None:
    with pytest.raises(LimitError, match="bytes"):
        GpuBinnedSah(device, 1 << 30)
