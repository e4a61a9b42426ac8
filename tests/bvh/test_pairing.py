import itertools

import numpy as np
import pytest

from bvh.decode import decode_triangles
from bvh.encode import pack_blocks
from bvh.pairing import Blocks, block_bounds, pair_triangles, single_blocks
from bvh.triangles import TriangleSet, triangle_bounds

# A unit quad 0 1 2 3 cut along 0-2.
CORNERS = np.array([[0, 0, 0], [1, 0, 0.1], [1, 1, 0.2], [0, 1, 0.3]], np.float32)


def _pair(triangles: np.ndarray, geometry: list[int] | None = None) -> Blocks:
    numbers = np.array(geometry or [0] * len(triangles), np.uint32)
    return pair_triangles(triangles, numbers, triangle_bounds(triangles))


def pair_count(blocks: Blocks) -> int:
    return int((blocks.second >= 0).sum())


def _set(triangles: np.ndarray) -> TriangleSet:
    count = len(triangles)
    return TriangleSet(
        triangles, np.zeros(count, np.uint32), np.arange(count, dtype=np.uint32), 0, 0
    )


@pytest.mark.parametrize(("a", "b"), list(itertools.product(range(3), repeat=2)))
def test_every_rotation_restores_vertex_order_and_winding(a: int, b: int) -> None:
    first = np.roll([0, 1, 2], a)
    second = np.roll([0, 2, 3], b)
    triangles = CORNERS[[first, second]]
    blocks = _pair(triangles)
    assert pair_count(blocks) == 1
    words, types = pack_blocks(blocks, _set(triangles), np.array([True]))
    assert types.tolist() == [1]
    rows = decode_triangles(words, types)
    assert rows.primitive.tolist() == [0, 1]
    assert (rows.positions == triangles).all()
    for held, original in zip(rows.slot_positions, triangles, strict=True):
        rotations = [np.roll(original, i, axis=0) for i in range(3)]
        assert any((held == rotation).all() for rotation in rotations)


@pytest.mark.parametrize(
    "second", [[2, 0, 3], [0, 3, 2]], ids=["edge in the same direction", "and rotated"]
)
def test_same_direction_edges_stay_apart(second: list[int]) -> None:
    assert pair_count(_pair(CORNERS[[[0, 1, 2], second]])) == 0


def test_geometry_and_exact_positions_decide() -> None:
    quad = CORNERS[[[0, 1, 2], [0, 2, 3]]]
    assert pair_count(_pair(quad, [0, 0])) == 1
    assert pair_count(_pair(quad, [0, 1])) == 0
    moved = quad.copy()
    moved[1, 0, 0] = np.nextafter(np.float32(0), np.float32(1))
    assert pair_count(_pair(moved)) == 0
    zero = quad.copy()
    zero[1, 0, 0] = -0.0  # equal as a number, not as bits
    assert pair_count(_pair(zero)) == 0


def test_wasteful_pairs_are_refused() -> None:
    """Two long thin triangles along x and along y meet at a short edge: their common box is far
    larger than both."""
    bend = np.array(
        [[[0, 0, 0], [100, 0, 0], [0, 0.01, 0]], [[0, 0, 0], [0, 0.01, 0], [-0.01, 100, 100]]],
        np.float32,
    )
    assert pair_count(_pair(bend)) == 0


def test_matching_prefers_the_tightest_partner() -> None:
    """A strip of three: the outer two are flat, the middle one shares a better edge with the
    second."""
    strip = np.array(
        [
            [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
            [[1, 0, 0], [1, 1, 0], [0, 1, 0]],
            [[1, 0, 0], [9, 9, 9], [1, 1, 0]],
        ],
        np.float32,
    )
    blocks = _pair(strip)
    assert blocks.first.tolist() == [0, 2]
    assert blocks.second.tolist() == [1, -1]


def test_a_grid_pairs_up_completely(rng: np.random.Generator) -> None:
    n = 20
    x, y = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    points = np.stack([x, y, 0.1 * np.sin(x)], axis=-1).reshape(-1, 3).astype(np.float32)
    at = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).reshape(-1)
    quads = np.stack([at, at + n + 1, at + n + 2, at + 1], axis=1)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    triangles = points[rng.permutation(faces)]
    blocks = _pair(triangles)
    assert pair_count(blocks) == n * n
    used = np.concatenate([blocks.first, blocks.second])
    assert sorted(used.tolist()) == list(range(2 * n * n))
    bounds = block_bounds(blocks, triangle_bounds(triangles))
    for row in range(len(bounds)):
        both = triangles[[blocks.first[row], blocks.second[row]]].reshape(-1, 3)
        assert (bounds[row] == [both.min(axis=0), both.max(axis=0)]).all()


def test_many_triangles_on_one_edge_give_a_valid_matching(rng: np.random.Generator) -> None:
    fan = np.zeros((31, 3, 3), np.float32)
    fan[:, 1] = [0, 0, 1]
    fan[:, 2, :2] = rng.normal(size=(31, 2))
    fan[::2] = fan[::2, ::-1]  # half of them the other way round
    blocks = _pair(fan)
    second = blocks.second[blocks.second >= 0]
    used = np.concatenate([blocks.first, second])
    assert sorted(used.tolist()) == list(range(31))


def test_single_blocks() -> None:
    blocks = single_blocks(3)
    assert blocks.first.tolist() == [0, 1, 2]
    assert pair_count(blocks) == 0
