"""PLOC on the GPU against its twins, stage by stage and as a whole, on inputs that merge slowly."""

from typing import Any

import numpy as np
import pytest

from bvh.builders.ploc import PlocConfig, build
from bvh.gpu.build_records import BUILD_STATE, box_buffers, write_boxes
from bvh.gpu.ploc import GpuPloc
from bvh.gpu.ploc_stages import (
    CHUNK,
    CLUSTER,
    HEIGHT_BITS,
    MOST_PRIMITIVES,
    chunk_count,
    dispatches,
    height_limit,
    make_parameters,
)
from bvh.tree import EMPTY, MAX_DEPTH, Tree, check_tree, tree_levels
from engine.gpu.errors import LimitError
from engine.gpu.stage import submit_pass

CAPACITY = 17_000


@pytest.fixture(scope="module")
def builders(device: Any) -> dict[int, GpuPloc]:
    """One a radius for the whole file: every build after the first reuses dirty scratch."""
    return {r: GpuPloc(device, CAPACITY, PlocConfig(r)) for r in (1, 8, 16)}


def _boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    low = rng.random((count, 3))
    size = 10.0 ** rng.uniform(-5, -0.5, (count, 1)) * rng.random((count, 3))
    return np.stack([low, low + size], axis=1).astype(np.float32)


def _equal(count: int) -> np.ndarray:
    return np.tile(np.array([[0, 0, 0], [1, 1, 1]], np.float32), (count, 1, 1))


def _nested(count: int) -> np.ndarray:
    """Each in the next: only the two smallest are each other's nearest, round after round."""
    size = np.linspace(0.1, 1.0, count, dtype=np.float32)[:, None]
    return np.stack([np.repeat(-size, 3, 1), np.repeat(size, 3, 1)], axis=1)


def _growing(count: int) -> np.ndarray:
    """A row with growing sizes and gaps: the same, with Morton codes that differ."""
    x = np.cumsum(np.linspace(1, 50, count))
    low = np.zeros((count, 3))
    low[:, 0] = x
    high = low + np.linspace(0.1, 5, count)[:, None]
    return np.stack([low, high], axis=1).astype(np.float32)


def _clusters(count: int) -> np.ndarray:
    rng = np.random.default_rng(count)
    centre = rng.random((40, 3))[rng.integers(0, 40, count)] + rng.normal(size=(count, 3)) * 0.01
    size = np.where(rng.random(count) < 0.01, 0.5, 0.002)[:, None]
    return np.stack([centre - size, centre + size], axis=1).astype(np.float32)


INPUTS = {
    "random": lambda count: _boxes(np.random.default_rng(count), count),
    "equal": _equal,
    "nested": _nested,
    "growing": _growing,
    "clusters": _clusters,
}


def _same(got: Tree, expected: Tree, bounds: np.ndarray) -> None:
    assert (got.children == expected.children).all()
    assert np.array_equal(got.bounds, expected.bounds)
    assert check_tree(got, bounds) == []
    assert len(tree_levels(got.children)) <= MAX_DEPTH


@pytest.mark.parametrize("shape", INPUTS)
@pytest.mark.parametrize("count", [2, 3, 17, 256, 257, 1501])
def test_equals_the_builder_on_the_cpu(builders: Any, shape: str, count: int) -> None:
    bounds = INPUTS[shape](count)
    for radius in (8, 16):
        item = builders[radius]
        _same(item.build_boxes(bounds), build(bounds, item.config), bounds)


def test_many_boxes(builders: Any) -> None:
    for shape, radius in (("random", 8), ("clusters", 16), ("random", 1)):
        bounds = INPUTS[shape](CAPACITY)
        item = builders[radius]
        _same(item.build_boxes(bounds), build(bounds, item.config), bounds)


@pytest.mark.parametrize("count", [0, 1])
def test_no_box_and_one(builders: Any, rng: Any, count: int) -> None:
    bounds = _boxes(rng, count)
    builders[8].build_boxes(_boxes(rng, 700))
    got = builders[8].build_boxes(bounds)
    assert got.children.tolist() == [[~0 if count else EMPTY, EMPTY]]
    if count:
        assert (got.bounds == bounds).all()
    else:
        assert np.isinf(got.bounds).all()
        written = builders[8].device.read(builders[8].resources["bounds"], np.float32, count=6)
        assert (written[:3] > written[3:]).all()
        written = builders[8].device.read(builders[8].resources["children"], np.int32, count=2)
        assert (written == EMPTY).all()


@pytest.mark.parametrize("kept", [0, 1, 2, 300, 5000])
def test_count_comes_from_the_gpu(builders: Any, device: Any, rng: Any, kept: int) -> None:
    """Fewer boxes than the host's bound, which alone the dispatches follow."""
    item, bounds = builders[8], _nested(5000)
    inputs = box_buffers(device, 5000)
    write_boxes(device, inputs, bounds)
    state = np.zeros(1, BUILD_STATE.dtype)
    state["kept"] = kept
    device.write(inputs["state"], state)
    item.set_count(5000)
    submit_pass(device, lambda scope: item.encode(scope, inputs))
    got = item.read()
    expected = build(bounds[:kept], item.config, 5000)
    assert (got.children == expected.children).all()
    assert kept == 0 or np.array_equal(got.bounds, expected.bounds)
    assert item.tree_buffers.keys() == {"state", "boxes", "children", "bounds"}


def _arrays(rng: np.random.Generator, sizes: Any) -> dict[str, np.ndarray]:
    """Buffers of a dispatch in the middle of a build: chunks of those sizes."""
    sizes = np.asarray(sizes)
    total, chunks = int(sizes.sum()), len(sizes)
    places = np.sort(rng.permutation(4 * total + 8)[:total]).astype(np.uint32)
    clusters = np.zeros(CHUNK * chunks, CLUSTER.dtype)
    at = np.concatenate([np.arange(s) + CHUNK * i for i, s in enumerate(sizes)]).astype(int)
    boxes = _boxes(rng, total)
    clusters["low"][at], clusters["high"][at] = boxes[:, 0], boxes[:, 1]
    clusters["link"][at] = rng.permutation(total)  # one of them is node 0
    height = rng.integers(0, height_limit(total) + 1, total).astype(np.uint32)
    clusters["place_height"][at] = places << np.uint32(HEIGHT_BITS) | height
    nodes = 4 * total + 8
    return {
        "parameters": make_parameters(False),
        "counts": np.array([chunks, *sizes], np.uint32),
        "clusters": clusters,
        "next_counts": np.full(1 + chunks, 77, np.uint32),
        "next_clusters": np.zeros(CHUNK * chunks, CLUSTER.dtype),
        "children": np.full(2 * nodes, 55, np.int32),
        "bounds": np.full(6 * nodes, 5, np.float32),
        "zero_parent": np.full(1, 3, np.uint32),
    }


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [[1], [256], [256, 1], [1] * 700, [256] * 3 + [7], [60, 200, 1, 1, 256, 130] * 5, [70] * 260],
    ids=lambda sizes: f"{len(sizes)}x{sizes[0]}",
)
def test_rounds_equal_their_twin(
    builders: Any, rng: Any, sizes: Any, forced: bool, same_as_twin: Any
) -> None:
    """Any sizes of chunks, any heights, fewer workgroups than chunks."""
    for item in builders.values():
        arrays = _arrays(rng, sizes)
        arrays["parameters"] = make_parameters(forced)
        outputs = "next_counts next_clusters children bounds zero_parent"
        same_as_twin(item.rounds, arrays, 3, outputs, by_value=True)


def test_forced_dispatches_always_suffice(rng: Any) -> None:
    """Clusters so tall that no search may merge them: halving alone gets to one, and within
    MAX_DEPTH levels, whatever the sizes of the chunks were."""
    from bvh.gpu.ploc_stages import ploc_rounds

    for total in (257, 70_000):
        sizes = np.full(chunk_count(total), CHUNK)
        sizes[-1] = total - sizes[:-1].sum()
        arrays = _arrays(rng, sizes)
        live = arrays["clusters"]["high"][:, 0] > arrays["clusters"]["low"][:, 0]
        heights = np.uint32(height_limit(total))
        words = arrays["clusters"]["place_height"]
        words[live] = words[live] >> np.uint32(HEIGHT_BITS) << np.uint32(HEIGHT_BITS) | heights
        arrays["clusters"]["link"] += 1
        left = []
        for forced in [forced for forced in dispatches(total) if forced] + [False]:
            arrays["parameters"] = make_parameters(forced)
            ploc_rounds(*arrays.values(), radius=8)
            for name in ("counts", "clusters"):
                next_name = f"next_{name}"
                arrays[name], arrays[next_name] = arrays[next_name], arrays[name]
            left.append(int(arrays["counts"][1 : 1 + arrays["counts"][0]].sum()))
        assert left[-1] == 1 and left[-2] <= CHUNK
        height = arrays["clusters"]["place_height"][0] & ((1 << HEIGHT_BITS) - 1)
        assert height <= MAX_DEPTH


def test_equal_boxes_halve(builders: Any) -> None:
    bounds = _equal(1 << 14)
    assert len(tree_levels(builders[8].build_boxes(bounds).children)) == 14


def test_same_input_same_bytes(builders: Any, rng: Any) -> None:
    bounds = _boxes(rng, 9000)
    bounds[1000:5000] = bounds[0]
    first, second = (builders[16].build_boxes(bounds) for _ in range(2))
    assert first.children.tobytes() == second.children.tobytes()
    assert first.bounds.tobytes() == second.bounds.tobytes()


def test_refuses_what_does_not_fit(device: Any, builders: Any) -> None:
    with pytest.raises(ValueError, match="made for"):
        builders[8].set_count(CAPACITY + 1)
    with pytest.raises(LimitError, match="one build takes"):
        GpuPloc(device, MOST_PRIMITIVES + 1)
    limit = min(device.limits["max-storage-buffer-binding-size"], device.limits["max-buffer-size"])
    if limit // CLUSTER.size < MOST_PRIMITIVES:
        with pytest.raises(LimitError, match="ploc/clusters needs"):
            GpuPloc(device, limit // CLUSTER.size + 1)
