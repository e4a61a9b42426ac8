"""Set-up, pairing and blocks: stages against their twins, pairs against the rules."""

from typing import Any

import numpy as np
import pytest

from bvh.gpu.build_records import BUILD_STATE, group_count
from bvh.gpu.pair_far import PASSES, ROUNDS, table_slots
from bvh.gpu.pair_records import CORNER_SHIFT, NONE, REMOVED, triangle_ids
from bvh.gpu.pairing import GpuPairing, pair_on_cpu, pair_parameters
from bvh.pairing import WORST_RATIO, pair_triangles
from bvh.tree import half_area
from bvh.triangles import is_degenerate, triangle_bounds
from engine.gpu.errors import LimitError
from engine.gpu.stage import submit_pass

COUNTS = [0, 1, 2, 3, 255, 256, 257, 3001]
CAPACITY = 20_000


@pytest.fixture(scope="module")
def pairing(device: Any) -> GpuPairing:
    """For the whole file: every use after the first finds dirty scratch."""
    return GpuPairing(device, CAPACITY)


def _grid(rng: np.random.Generator, count: int) -> np.ndarray:
    """A bent sheet of quads, two triangles each, some of them broken; in any order past 300."""
    side = int(np.ceil(np.sqrt(count / 2))) + 1
    x, y = np.meshgrid(np.arange(side + 1.0), np.arange(side + 1.0))
    points = np.stack([x, y, np.sin(x) + rng.random(x.shape)], axis=-1).astype(np.float32)
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    quads = np.stack([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)], axis=2)
    triangles = quads.reshape(-1, 3, 3)[:count].copy()
    turned = np.arange(count) % 3
    triangles = np.take_along_axis(
        triangles, ((np.arange(3) + turned[:, None]) % 3)[:, :, None], axis=1
    )
    triangles[300:] = rng.permutation(triangles[300:])
    triangles[3::17, 2] = triangles[3::17, 1]
    triangles[7::41, 1, 2] = np.nan
    triangles[8::43, 0, 0] = -np.inf
    return triangles


def _ids(count: int, geometries: int = 3) -> np.ndarray:
    geometry = (np.arange(count) // 100 % geometries).astype(np.uint32)
    return triangle_ids(geometry, np.arange(count, dtype=np.uint32), np.arange(geometries) % 2 > 0)


def _run(device: Any, pairing: GpuPairing, triangles: np.ndarray, ids: np.ndarray) -> Any:
    pairing.set_count(len(triangles))
    inputs = {
        "triangles": device.upload("triangles", triangles),
        "triangle_ids": device.upload("triangle_ids", ids),
    }
    submit_pass(device, lambda scope: pairing.encode(scope, inputs))
    state = device.read(pairing.resources["state"], BUILD_STATE.dtype, count=1)
    kept = int(state["kept"][0])
    blocks = device.read(pairing.resources["blocks"], count=2 * kept).reshape(-1, 2)
    boxes = device.read(pairing.resources["boxes"], np.float32, count=6 * kept)
    return state, blocks, boxes.reshape(-1, 2, 3)


def _arrays(triangles: np.ndarray, leaf: int = 2) -> dict[str, np.ndarray]:
    count = len(triangles)
    return {
        "parameters": pair_parameters(count, leaf, count),
        "triangles": triangles.reshape(-1),
        "triangle_ids": _ids(count).reshape(-1),
        "triangle_boxes": np.zeros(6 * count, np.float32),
        "mates": np.full(count, 7, np.uint32),
        "starts": np.full(count, 7, np.uint32),
        "edge_table": np.zeros(2 * table_slots(count), np.uint32),
        "choices": np.full(2 * count, 7, np.uint32),
        "block_total": np.zeros(1, np.uint32),
        "blocks": np.zeros(2 * count, np.uint32),
        "boxes": np.zeros(6 * count, np.float32),
        "state": np.ones(1, BUILD_STATE.dtype),
    }


@pytest.mark.parametrize("leaf", [1, 2])
@pytest.mark.parametrize("count", COUNTS)
def test_stages_equal_their_twins(
    pairing: GpuPairing, rng: Any, count: int, leaf: int, same_as_twin: Any
) -> None:
    arrays = _arrays(_grid(rng, count), leaf)
    groups = max(1, group_count(count))
    stages = pairing.stages
    same_as_twin(stages["triangle_setup"], arrays, groups, "triangle_boxes state")
    assert not arrays["state"].view(np.uint32).any()
    arrays["triangles"] = arrays["triangles"].view(np.uint32)
    same_as_twin(stages["pair_near"], arrays, groups, "mates starts")
    for number in range(PASSES if leaf > 1 else 0):
        arrays["parameters"] = pair_parameters(count, leaf, count, number)
        same_as_twin(stages["clear_edges"], arrays, 2, "edge_table")
        same_as_twin(stages["insert_edges"], arrays, 2, "edge_table choices")
        for _ in range(ROUNDS):
            same_as_twin(stages["choose_far"], arrays, 2, "choices")
            same_as_twin(stages["settle_far"], arrays, 2, "mates starts")
    arrays["block_total"][0] = arrays["starts"].sum()
    arrays["starts"] = np.cumsum(arrays["starts"], dtype=np.uint32) - arrays["starts"]
    arrays["state"] = arrays["state"].view(np.uint32)
    same_as_twin(stages["make_blocks"], arrays, groups, "blocks boxes state")


@pytest.mark.parametrize("count", COUNTS)
def test_whole_equals_the_cpu_and_keeps_the_rules(
    device: Any, pairing: GpuPairing, rng: Any, count: int
) -> None:
    triangles, ids = _grid(rng, count), _ids(count)
    state, blocks, boxes = _run(device, pairing, triangles, ids)
    expected = pair_on_cpu(triangles, ids, 2, CAPACITY)
    assert state.tobytes() == expected[0].tobytes()
    assert (blocks == expected[1]).all() and boxes.tobytes() == expected[2].tobytes()
    finite = np.isfinite(triangles).all(axis=(1, 2))
    degenerate = is_degenerate(triangles) & finite
    assert state["degenerate"][0] == degenerate.sum()
    assert state["nonfinite"][0] == (~finite).sum()
    assert state["triangles"][0] == (finite & ~degenerate).sum()
    pair = blocks[:, 1] != NONE
    first, second = blocks[:, 0] & 0x3FFFFFFF, blocks[pair, 1] & 0x3FFFFFFF
    assert (np.diff(first.astype(int)) > 0).all()
    used = np.concatenate([first, second])
    assert sorted(used) == np.flatnonzero(finite & ~degenerate).tolist()
    assert not pair.any() or (first[pair] < second).all()
    i, j = blocks[pair, 0] >> CORNER_SHIFT, blocks[pair, 1] >> CORNER_SHIFT
    first = first[pair]
    assert (triangles[first, (i + 1) % 3] == triangles[second, (j + 2) % 3]).all()
    assert (triangles[first, (i + 2) % 3] == triangles[second, (j + 1) % 3]).all()
    assert (ids[first, 0] == ids[second, 0]).all()
    area = [half_area(triangle_bounds(triangles[part])) for part in (first, second)]
    assert (half_area(boxes[pair]) <= 1.000001 * WORST_RATIO * (area[0] + area[1])).all()


@pytest.mark.parametrize("count", [256, 5000])
def test_pairs_are_nearly_those_of_the_greedy_matching(rng: Any, count: int) -> None:
    """Of triangles in any order, within a tile and across tiles."""
    triangles = rng.permutation(_grid(rng, count))
    triangles = triangles[np.isfinite(triangles).all(axis=(1, 2))]
    triangles = triangles[~is_degenerate(triangles)]
    zeros = np.zeros(len(triangles), np.uint32)
    ids = triangle_ids(zeros, zeros, np.ones(1, np.bool_))
    _, blocks, _ = pair_on_cpu(triangles, ids, 2, len(triangles))
    best = pair_triangles(triangles, zeros, triangle_bounds(triangles))
    assert (blocks[:, 1] != NONE).sum() >= 0.93 * (best.second >= 0).sum() > 0.3 * len(triangles)
    assert len(triangles) == len(blocks) + (blocks[:, 1] != NONE).sum()


@pytest.mark.parametrize("scale", [1e-25, 1e-12, 1.0, 1e12, 1e35])
def test_scale_does_not_matter(device: Any, pairing: GpuPairing, rng: Any, scale: float) -> None:
    triangles, ids = _grid(rng, 300), _ids(300)
    _, expected, _ = pair_on_cpu(triangles, ids, 2, CAPACITY)
    power = np.float32(2.0 ** np.round(np.log2(scale)))
    _, blocks, _ = _run(device, pairing, triangles * power, ids)
    assert (blocks == expected).all()


def test_small_triangles_are_not_degenerate(rng: Any) -> None:
    """Though products of their edges would underflow."""
    triangles = (rng.random((500, 3, 3)) * 1e-25).astype(np.float32)
    triangles[::5, 2] = triangles[::5, 0]
    state, blocks, _ = pair_on_cpu(triangles, _ids(500), 1, 500)
    assert state["degenerate"][0] == 100 and len(blocks) == 400


@pytest.mark.parametrize("count", [2, 700, CAPACITY])
def test_copies_of_one_triangle(device: Any, pairing: GpuPairing, count: int) -> None:
    """No two of them run along an edge in opposite directions."""
    triangles = np.repeat(np.eye(3, dtype=np.float32)[None], count, axis=0)
    state, blocks, _ = _run(device, pairing, triangles, _ids(count, 1))
    assert state["kept"][0] == count and (blocks[:, 1] == NONE).all()


def test_turned_copies_pair_once(device: Any, pairing: GpuPairing) -> None:
    """A closed, flat envelope: three edges to choose from, one pair."""
    front = np.eye(3, dtype=np.float32)
    triangles = np.stack([front, front[::-1]])
    _, blocks, boxes = _run(device, pairing, triangles, _ids(2, 1))
    assert len(blocks) == 1 and (boxes[0] == [[0, 0, 0], [1, 1, 1]]).all()


def test_negative_zero_has_no_sign_in_boxes(device: Any, pairing: GpuPairing) -> None:
    triangles = np.array([[[-0.0, 0, 0], [0, -0.0, 1], [-0.0, 1, -0.0]]], np.float32)
    _, _, boxes = _run(device, pairing, triangles, _ids(1))
    assert not np.signbit(boxes).any()


def test_nothing_usable(device: Any, pairing: GpuPairing) -> None:
    state, blocks, _ = _run(device, pairing, np.full((300, 3, 3), np.nan, np.float32), _ids(300))
    assert (state["kept"][0], state["nonfinite"][0], len(blocks)) == (0, 300, 0)
    mates = device.read(pairing.resources["mates"], count=300)
    assert (mates == REMOVED).all()


def test_refuses_what_does_not_fit(device: Any, pairing: GpuPairing) -> None:
    with pytest.raises(ValueError, match="made for"):
        pairing.set_count(CAPACITY + 1)
    with pytest.raises(LimitError, match="one build takes"):
        GpuPairing(device, 1 << 30)
