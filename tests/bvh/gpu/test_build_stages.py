"""Every stage of the LBVH build against its twin, each fed the twins' results before it."""

from typing import Any

import numpy as np
import pytest

from bvh.builders.lbvh import LbvhConfig
from bvh.gpu.build_records import BUILD_STATE, LARGEST, SCENE_PARTIAL, group_count, make_parameters
from bvh.gpu.lbvh import GpuLbvh
from bvh.gpu.range_bounds import pyramid_dispatches, pyramid_sizes
from bvh.gpu.scene_box import tile_count
from bvh.gpu.tree_order_records import NO_PARENT
from bvh.tree import tree_levels
from engine.gpu.primitives.radix_sort import radix_sort
from engine.gpu.stage import Stage

COUNTS = [1, 2, 3, 255, 256, 257, 2049, 20_000]
CODES = [(10, 0), (21, 0), (9, 4), (18, 8)]


@pytest.fixture(scope="module")
def stages(device: Any) -> dict[str, Stage]:
    item = GpuLbvh(device, 1)
    return {**item.sorted.stages, **item.stages}


def _boxes(rng: np.random.Generator, count: int, kept: int) -> np.ndarray:
    """Boxes of many sizes in front, garbage behind those kept."""
    centre = rng.random((count, 3)) * [8, 3, 1] - 2
    size = 10.0 ** rng.uniform(-4, 0.5, (count, 1)) * rng.random((count, 3))
    boxes = np.stack([centre - size, centre + size], axis=1).astype(np.float32)
    boxes[kept:] = 1e30
    return boxes


def _arrays(
    rng: np.random.Generator, count: int, code: tuple[int, int], kept: int | None = None
) -> dict[str, np.ndarray]:
    """Every buffer of a build, empty but for parameters, state and boxes."""
    kept = count if kept is None else kept
    config = LbvhConfig(*code)
    nodes = max(count - 1, 1)
    state = np.zeros(1, BUILD_STATE.dtype)
    state["kept"] = kept
    return {
        "parameters": make_parameters(count, *code),
        "boxes": _boxes(rng, count, kept).reshape(-1),
        "sort_count": np.zeros(1, np.uint32),
        "partials": np.zeros(tile_count(count), SCENE_PARTIAL.dtype),
        "state": state,
        "keys": np.zeros(config.key_words * count, np.uint32),
        "payload": np.zeros(count, np.uint32),
        "children": np.zeros(2 * nodes, np.int32),
        "ranges": np.zeros(2 * nodes, np.uint32),
        "parents": np.zeros(nodes, np.uint32),
        "deepest": np.full(2, 77, np.uint32),
        "pyramid": np.zeros(6 * sum(pyramid_sizes(count)), np.float32),
        "bounds": np.zeros(6 * nodes, np.float32),
    }


@pytest.mark.parametrize("code", CODES, ids=str)
@pytest.mark.parametrize("count", COUNTS)
def test_stages_equal_their_twins(
    stages: Any, rng: Any, count: int, code: tuple[int, int], same_as_twin: Any
) -> None:
    arrays = _arrays(rng, count, code, kept=count - count // 5)
    count -= count // 5
    groups = group_count(len(arrays["payload"]))
    same_as_twin(
        stages["scene_box"], arrays, tile_count(len(arrays["payload"])), "partials", by_value=True
    )
    same_as_twin(stages["grid"], arrays, 1, "state sort_count", by_value=True)
    assert arrays["sort_count"][0] == count
    same_as_twin(stages["morton"], arrays, groups, "keys payload")
    words = int(arrays["parameters"]["key_words"][0])
    keys = arrays["keys"].reshape(-1, words)[:count]
    keys, arrays["payload"][:count] = radix_sort(
        keys if words == 2 else keys[:, 0], arrays["payload"][:count]
    )
    arrays["keys"][: words * count] = np.ascontiguousarray(keys).reshape(-1)
    same_as_twin(
        stages["hierarchy"], arrays, groups, "children ranges parents deepest", by_value=True
    )
    same_as_twin(stages["tree_depth"], arrays, groups, "deepest")
    for first, items in pyramid_dispatches(len(arrays["payload"])):
        arrays["parameters"]["level"] = first
        same_as_twin(stages["box_pyramid"], arrays, group_count(items), "pyramid", by_value=True)
    same_as_twin(stages["range_bounds"], arrays, groups, "bounds", by_value=True)


def _hierarchy(stages: Any, rng: np.random.Generator, max_depth: int, attempts: int) -> Any:
    """Buffers of 3000 boxes after that many attempts of the twins."""
    arrays = _arrays(rng, 3000, (18, 8))
    arrays["parameters"]["max_depth"] = max_depth
    for name in ("scene_box", "grid", "morton"):
        stages[name].run_cpu(arrays)
    keys, arrays["payload"] = radix_sort(arrays["keys"].reshape(-1, 2), arrays["payload"])
    arrays["keys"] = keys.reshape(-1)
    for attempt in range(attempts):
        arrays["parameters"]["attempt"] = attempt
        stages["hierarchy"].run_cpu(arrays)
        stages["tree_depth"].run_cpu(arrays)
    return arrays


def test_parents_and_depth(stages: Any, rng: Any) -> None:
    arrays = _hierarchy(stages, rng, 48, 1)
    children = arrays["children"].reshape(-1, 2)
    assert arrays["deepest"].tolist() == [len(tree_levels(children)) - 1, 0]
    assert arrays["parents"][0] == NO_PARENT
    for side in (0, 1):
        inner = np.flatnonzero(children[:, side] >= 0)
        assert (arrays["parents"][children[inner, side]] == inner + (side << 31)).all()


@pytest.mark.parametrize("max_depth", [12, 14, 48])
def test_second_attempts_equal_their_twins(
    stages: Any, rng: Any, max_depth: int, same_as_twin: Any
) -> None:
    """Only where the first tree was too deep do the stages write anything."""
    arrays = _hierarchy(stages, rng, max_depth, 1)
    first = arrays["children"].copy()
    arrays["parameters"]["attempt"] = 1
    groups = group_count(3000)
    same_as_twin(stages["hierarchy"], arrays, groups, "children ranges parents")
    same_as_twin(stages["tree_depth"], arrays, groups, "deepest")
    again = max_depth < 48
    assert (arrays["children"] == first).all() != again
    assert len(tree_levels(arrays["children"].reshape(-1, 2))) <= max_depth
    assert (arrays["deepest"][1] > 0) == again


def test_codes_follow_the_grid(stages: Any, same_as_twin: Any) -> None:
    """Corners of a cube, by hand: x is the highest bit; the grid ends at the last centroid."""
    corners = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)], np.float32)
    arrays = _arrays(np.random.default_rng(1), 8, (10, 0))
    arrays["boxes"] = np.stack([corners, corners], axis=1).reshape(-1)
    for name, groups, outputs in (
        ("scene_box", 1, "partials"),
        ("grid", 1, "state sort_count"),
        ("morton", 1, "keys payload"),
    ):
        same_as_twin(stages[name], arrays, groups, outputs, by_value=True)
    assert (arrays["keys"] >> 27 == np.arange(8)).all()


def test_size_bits_part_large_boxes(stages: Any, rng: Any, same_as_twin: Any) -> None:
    """Bit 27 of a 31-bit code, behind the first triple: whether the box is as large as half of
    the grid."""
    low = rng.random((64, 3)).astype(np.float32)
    arrays = _arrays(rng, 64, (9, 4))
    size = np.where(np.arange(64) % 2, 0.9, 1e-3)[:, None].astype(np.float32)
    arrays["boxes"] = np.stack([low - size / 2, low + size / 2], axis=1).reshape(-1)
    same_as_twin(stages["scene_box"], arrays, 1, "partials", by_value=True)
    same_as_twin(stages["grid"], arrays, 1, "state sort_count", by_value=True)
    same_as_twin(stages["morton"], arrays, 1, "keys payload")
    assert (arrays["keys"] >> 27 & 1 == np.arange(64) % 2).all()
    assert (arrays["keys"] >> 31 == 0).all()


def test_an_empty_scene_has_an_empty_box(stages: Any, same_as_twin: Any) -> None:
    """Nothing kept of 300 triangles: no code is made, whatever lies in `boxes`."""
    arrays = _arrays(np.random.default_rng(1), 300, (18, 8), kept=0)
    arrays["keys"][:] = 7
    same_as_twin(stages["scene_box"], arrays, 1, "partials", by_value=True)
    same_as_twin(stages["grid"], arrays, 1, "state sort_count", by_value=True)
    same_as_twin(stages["morton"], arrays, 2, "keys")
    state = arrays["state"][0]
    assert state["kept"] == 0 and (state["low"] == LARGEST).all() and state["scale"] == 0
    assert (arrays["keys"] == 7).all()
