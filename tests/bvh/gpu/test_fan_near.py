"""Fans on the GPU: stages against their twins, blocks against the rules."""

from typing import Any

import numpy as np
import pytest
import trimesh

from bvh.fans import fan_triangles
from bvh.gpu.build_records import BUILD_STATE
from bvh.gpu.fan_near import GpuFans, fans_on_cpu
from bvh.gpu.pair_records import CORNER_SHIFT, NEAR_TILE, NONE, REMOVED, triangle_ids
from bvh.layout import FAN_GEOMETRY_LIMIT
from bvh.triangles import triangle_bounds
from engine.gpu.errors import LimitError
from engine.gpu.stage import submit_pass

COUNTS = [0, 1, 2, 3, 4, 255, 256, 257, 3001]
CAPACITY = 4000


@pytest.fixture(scope="module")
def fans(device: Any) -> GpuFans:
    """For the whole file: every use after the first finds dirty scratch."""
    return GpuFans(device, CAPACITY)


def mesh(rng: np.random.Generator, count: int) -> np.ndarray:
    """A ball's triangles in a patchy order, turned, closed fans of four, and broken ones."""
    ball = trimesh.creation.icosphere(subdivisions=4).triangles.astype(np.float32)
    roofs = np.array([[0, 0, 2], [1, 0, 2], [0, 1, 2], [-1, 0, 2], [0, -1, 2]], np.float32)
    roofs = roofs[[[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]]]
    many = roofs + np.arange(30, dtype=np.float32)[:, None, None, None] * np.float32([3, 0, 0])
    triangles = np.concatenate([many.reshape(-1, 3, 3), ball])[:count].copy()
    turned = rng.integers(3, size=count)
    triangles = np.take_along_axis(
        triangles, ((np.arange(3) + turned[:, None]) % 3)[:, :, None], axis=1
    )
    triangles[2000:] = rng.permutation(triangles[2000:])
    triangles[203::37, 2] = triangles[203::37, 1]
    triangles[207::41, 1, 2] = np.nan
    return triangles


def ids_of(count: int) -> np.ndarray:
    """Geometries in runs; the last of four is beyond what a fan can name; one reserved number."""
    index = np.array([0, 1, FAN_GEOMETRY_LIMIT - 1, FAN_GEOMETRY_LIMIT])
    geometry = index[np.arange(count) // 300 % 4].astype(np.uint32)
    primitive = np.arange(count, dtype=np.uint32)
    primitive[90:91] = NONE
    return triangle_ids(geometry, primitive, np.arange(FAN_GEOMETRY_LIMIT + 1) % 2 > 0)


def run(device: Any, fans: GpuFans, triangles: np.ndarray, ids: np.ndarray) -> Any:
    fans.set_count(len(triangles))
    inputs = {
        "triangles": device.upload("triangles", triangles),
        "triangle_ids": device.upload("triangle_ids", ids),
    }
    submit_pass(device, lambda scope: fans.encode(scope, inputs))
    buffers = fans.buffers
    state = device.read(buffers["state"], BUILD_STATE.dtype, count=1)
    kept = int(state["kept"][0])
    blocks = device.read(buffers["blocks"], count=4 * kept).reshape(-1, 4)
    boxes = device.read(buffers["boxes"], np.float32, count=6 * kept).reshape(-1, 2, 3)
    return state, blocks, boxes


@pytest.mark.parametrize("count", COUNTS)
def test_the_gpu_equals_its_twins(
    device: Any, fans: GpuFans, rng: np.random.Generator, count: int
) -> None:
    triangles, ids = mesh(rng, count), ids_of(count)
    state, blocks, boxes = run(device, fans, triangles, ids)
    expected = fans_on_cpu(triangles, ids)
    for name in ("kept", "triangles", "degenerate", "nonfinite"):
        assert state[name] == expected[0][name], name
    assert np.array_equal(blocks, expected[1])
    assert np.array_equal(boxes, expected[2])


def test_blocks_are_fans_of_a_tile(rng: np.random.Generator) -> None:
    triangles, ids = mesh(rng, 3001), ids_of(3001)
    state, blocks, boxes = fans_on_cpu(triangles, ids)
    held = blocks != NONE
    triangle = (blocks & np.uint32((1 << CORNER_SHIFT) - 1)).astype(np.int64)
    corner = (blocks >> np.uint32(CORNER_SHIFT)).astype(np.int64)
    used = triangle[held]
    assert len(np.unique(used)) == len(used) == state["triangles"][0]
    sizes = held.sum(1)
    assert set(sizes.tolist()) == {1, 2, 3, 4} and (held[:, :1] == 1).all()
    assert len(used) / len(blocks) > 1.7  # a thousand of them are in random order
    bits = triangles.view(np.uint32)
    for row, size in enumerate(sizes.tolist()):
        members = triangle[row, :size]
        assert (members // NEAR_TILE == members[0] // NEAR_TILE).all()
        assert (ids[members, 0] == ids[members[0], 0]).all()
        turned = [np.roll(bits[t], -c, axis=0) for t, c in zip(members, corner[row], strict=False)]
        for before, after in zip(turned, turned[1:], strict=False):
            assert (before[0] == after[0]).all() and (before[2] == after[1]).all()
        if size == 4:
            assert (turned[3][2] == turned[0][1]).all()
        if size > 2:
            assert (ids[members, 0] & 0xFFFFFF).max() < FAN_GEOMETRY_LIMIT
            assert (ids[members, 1] != NONE).all()
        points = triangles[members].reshape(-1, 3)
        assert (boxes[row] == [points.min(0), points.max(0)]).all()


def test_rounds_leave_little_to_the_global_greedy(rng: np.random.Generator) -> None:
    ball = trimesh.creation.icosphere(subdivisions=4).triangles.astype(np.float32)
    ids = np.zeros((len(ball), 2), np.uint32)
    _, near, _ = fans_on_cpu(ball, ids)
    best = fan_triangles(ball, ids[:, 0], triangle_bounds(ball))
    assert len(near) < 1.2 * len(best.triangles)


def test_awkward_input(device: Any, fans: GpuFans, rng: np.random.Generator) -> None:
    copies = np.repeat(np.float32([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]]), 700, axis=0)
    book = np.zeros((300, 3, 3), np.float32)
    book[:, 1] = [0, 0, 1]
    book[:, 2, :2] = rng.normal(size=(300, 2))
    book[::2] = book[::2, ::-1]
    lost = np.full((5, 3, 3), np.nan, np.float32)
    for triangles in (copies, book, 1e30 * book, 1e-30 * book, lost):
        triangles = triangles.astype(np.float32)
        ids = np.zeros((len(triangles), 2), np.uint32)
        state, blocks, boxes = run(device, fans, triangles, ids)
        expected = fans_on_cpu(triangles, ids)
        assert state["kept"] == expected[0]["kept"]
        assert np.array_equal(blocks, expected[1]) and np.array_equal(boxes, expected[2])


def test_limits(device: Any, fans: GpuFans) -> None:
    with pytest.raises(ValueError):
        fans.set_count(CAPACITY + 1)
    with pytest.raises(LimitError):
        GpuFans(device, REMOVED)
