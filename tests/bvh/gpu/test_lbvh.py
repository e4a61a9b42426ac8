from typing import Any

import numpy as np
import pytest

from bvh.builders.lbvh import LbvhConfig, build
from bvh.gpu.lbvh import GpuLbvh
from bvh.tree import MAX_DEPTH, check_tree, tree_levels
from engine.gpu.errors import LimitError

CAPACITY = 300_000


@pytest.fixture(scope="module")
def builder(device: Any) -> GpuLbvh:
    """One for the whole file: every build after the first reuses dirty scratch."""
    return GpuLbvh(device, CAPACITY)


def _boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    low = rng.random((count, 3))
    size = 10.0 ** rng.uniform(-5, -0.5, (count, 1)) * rng.random((count, 3))
    return np.stack([low, low + size], axis=1).astype(np.float32)


def _deep_boxes(config: LbvhConfig) -> np.ndarray:
    """Points that part one bit at a time: a tree as deep as codes have bits."""
    points = [np.zeros(3)]
    for level in range(config.grid_bits):
        for axis in range(3):
            point = np.zeros(3)
            point[axis] = 2.0**-level
            points.append(point)
    corners = np.array(points, np.float32)
    return np.stack([corners, corners], axis=1)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 257, 2049, CAPACITY])
def test_equals_the_builder_on_the_cpu(builder: GpuLbvh, rng: Any, count: int) -> None:
    bounds = _boxes(rng, count)
    got = builder.build_boxes(bounds)
    expected = build(bounds, builder.config)
    assert (got.children == expected.children).all()
    assert np.array_equal(got.bounds, expected.bounds)
    assert check_tree(got, bounds) == []


@pytest.mark.parametrize("code", [(10, 0), (21, 0), (9, 4)])
def test_other_codes(device: Any, rng: Any, code: tuple[int, int]) -> None:
    bounds = _boxes(rng, 5000)
    config = LbvhConfig(*code)
    got = GpuLbvh(device, 5000, config).build_boxes(bounds)
    assert check_tree(got, bounds) == []
    assert (got.children == build(bounds, config).children).all()


def test_equal_centroids_make_an_even_tree(builder: GpuLbvh) -> None:
    bounds = np.zeros((100_000, 2, 3), np.float32)
    bounds[:, 1] = 1
    got = builder.build_boxes(bounds)
    assert check_tree(got, bounds) == []
    assert len(tree_levels(got.children)) == 17


def test_depth_is_bounded(device: Any) -> None:
    """Codes that would make 63 levels: the tree is split by fewer bits, the same as on the CPU,
    and the next build uses all of them again."""
    config = LbvhConfig(21, 0)
    bounds = _deep_boxes(config)
    unbounded = build(bounds, LbvhConfig(21, 0, max_depth=200))
    assert len(tree_levels(unbounded.children)) > MAX_DEPTH
    item = GpuLbvh(device, len(bounds), config)
    for _ in range(2):
        got = item.build_boxes(bounds)
        assert check_tree(got, bounds) == []
        assert len(tree_levels(got.children)) <= MAX_DEPTH
        assert (got.children == build(bounds, config).children).all()
    shallow = GpuLbvh(device, len(bounds), LbvhConfig(21, 0, max_depth=200))
    assert (shallow.build_boxes(bounds).children == unbounded.children).all()


def test_same_input_same_bytes(builder: GpuLbvh, rng: Any) -> None:
    bounds = _boxes(rng, 50_000)
    bounds[1000:9000] = bounds[0]  # ties, which only a stable sort decides
    first, second = builder.build_boxes(bounds), builder.build_boxes(bounds)
    assert first.children.tobytes() == second.children.tobytes()
    assert first.bounds.tobytes() == second.bounds.tobytes()


def test_refuses_what_does_not_fit(device: Any, builder: GpuLbvh) -> None:
    with pytest.raises(ValueError, match="made for"):
        builder.set_count(CAPACITY + 1)
    with pytest.raises(LimitError, match="one build takes"):
        GpuLbvh(device, 1 << 31)
    limit = min(device.limits["max-storage-buffer-binding-size"], device.limits["max-buffer-size"])
    if limit // 48 < 1 << 30:
        with pytest.raises(LimitError, match="lbvh/pyramid needs"):
            GpuLbvh(device, limit // 48 + 1)
