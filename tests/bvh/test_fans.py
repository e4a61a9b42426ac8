"""Packing triangles into fans: what may share a block, and how well meshes fill blocks."""

import itertools

import numpy as np
import pytest
import trimesh

from bvh.fans import Fans, fan_bounds, fan_triangles
from bvh.triangles import triangle_bounds

APEX = np.array([0, 0, 0.5], np.float32)
RIM = np.array([[1, 0, 0], [0, 1, 0.1], [-1, 0, 0.2], [0, -1, 0.3], [0.7, -0.7, 0]], np.float32)


def pack(triangles: np.ndarray, geometry: list[int] | None = None, **options: object) -> Fans:
    numbers = np.array(geometry or [0] * len(triangles), np.uint32)
    return fan_triangles(triangles, numbers, triangle_bounds(triangles), **options)


def about_apex(rim: list[int]) -> np.ndarray:
    """[len(rim) - 1, 3, 3] triangles about APEX, one for each two neighbours of `rim`."""
    corners = [[APEX, RIM[a], RIM[b]] for a, b in itertools.pairwise(rim)]
    return np.array(corners, np.float32)


def check(fans: Fans, triangles: np.ndarray) -> None:
    """Every triangle once, and every block a fan about one vertex."""
    used = fans.triangles[fans.triangles >= 0]
    assert sorted(used.tolist()) == list(range(len(triangles)))
    assert ((fans.triangles >= 0).cumsum(1)[:, -1] == fans.sizes).all()
    lowest = np.where(fans.triangles >= 0, fans.triangles, len(triangles)).min(1)
    assert (np.diff(lowest) > 0).all()
    bits = np.ascontiguousarray(triangles).view(np.uint32)
    for members, corners in zip(fans.triangles, fans.corners, strict=True):
        turned = [
            np.roll(bits[t], -c, axis=0) for t, c in zip(members, corners, strict=True) if t >= 0
        ]
        assert (members[len(turned) :] == -1).all()
        for before, after in itertools.pairwise(turned):
            assert (before[0] == after[0]).all() and (before[2] == after[1]).all()
        if len(turned) == 4:
            assert (turned[3][2] == turned[0][1]).all()


def grid(n: int, rng: np.random.Generator) -> np.ndarray:
    x, y = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    points = np.stack([x, y, 0.1 * np.sin(x)], axis=-1).reshape(-1, 3).astype(np.float32)
    at = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).reshape(-1)
    quads = np.stack([at, at + n + 1, at + n + 2, at + 1], axis=1)
    return points[rng.permutation(np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]))]


@pytest.mark.parametrize(
    ("rim", "sizes"),
    [
        ([0, 1], [1]),
        ([0, 1, 2], [2]),
        ([0, 1, 2, 3], [3]),  # open
        ([0, 1, 3, 0], [3]),  # closed
        ([0, 1, 2, 3, 0], [4]),  # closed: uses all five vertices
        ([0, 1, 2, 3, 4], [1, 3]),  # an open fan of four has six
        ([0, 1, 2, 3, 4, 0], [2, 3]),
    ],
)
def test_what_fits_in_five_vertices(
    rim: list[int], sizes: list[int], rng: np.random.Generator
) -> None:
    triangles = about_apex(rim)
    for _ in range(4):
        turned = np.stack([np.roll(t, rng.integers(3), axis=0) for t in triangles])
        turned = rng.permutation(turned)
        fans = pack(turned, worst_ratio=9.0)
        check(fans, turned)
        assert sorted(fans.sizes.tolist()) == sizes


def test_what_keeps_triangles_apart() -> None:
    four = about_apex([0, 1, 2, 3, 0])
    assert pack(four).sizes.tolist() == [4]
    assert pack(four, [0, 0, 1, 1]).sizes.tolist() == [2, 2]
    flipped = four.copy()
    flipped[2] = flipped[2, ::-1]
    assert sorted(pack(flipped, worst_ratio=9.0).sizes.tolist()) == [1, 3]
    moved = four.copy()
    moved[2][0, 0] = -0.0  # equal as a number, not as bits
    assert sorted(pack(moved, worst_ratio=9.0).sizes.tolist()) == [1, 3]
    allowed = np.array([True, True, True, False])
    fans = pack(four, allowed=allowed)
    check(fans, four)
    assert sorted(fans.sizes.tolist()) == [1, 3]
    assert pack(four, allowed=np.zeros(4, np.bool_)).sizes.tolist() == [2, 2]


def test_wasteful_fans_are_refused() -> None:
    """Slivers along x and along y meet at a short edge: their box is far larger than theirs."""
    near = [0, 0.01, 0]
    bend = np.array([[[0, 0, 0], [100, 0, 0], near], [[0, 0, 0], near, [-0.01, 100, 100]]])
    bend = bend.astype(np.float32)
    assert pack(bend).sizes.tolist() == [1, 1]
    assert pack(bend, worst_ratio=99.0).sizes.tolist() == [2]


def test_meshes_fill_blocks(rng: np.random.Generator) -> None:
    ball = trimesh.creation.icosphere(subdivisions=4).triangles.astype(np.float32)
    for triangles, least in ((grid(40, rng), 2.6), (rng.permutation(ball), 2.6)):
        fans = pack(triangles)
        check(fans, triangles)
        assert len(triangles) / len(fans.triangles) > least
        again = pack(triangles)
        assert (again.triangles == fans.triangles).all() and (again.corners == fans.corners).all()


def test_bounds_are_the_unions(rng: np.random.Generator) -> None:
    triangles = grid(9, rng)
    fans = pack(triangles)
    for bounds, row in zip(
        fan_bounds(fans, triangle_bounds(triangles)), fans.triangles, strict=True
    ):
        corners = triangles[row[row >= 0]].reshape(-1, 3)
        assert (bounds == [corners.min(0), corners.max(0)]).all()


def test_awkward_meshes_end(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (0, 1):
        assert len(pack(np.zeros((count, 3, 3), np.float32)).triangles) == count
    # A million copies of one triangle share every edge and fit together nowhere.
    check(pack(np.repeat(about_apex([0, 1]), 3000, axis=0)), np.zeros((3000, 3, 3)))
    book = np.zeros((31, 3, 3), np.float32)
    book[:, 1] = [0, 0, 1]
    book[:, 2, :2] = rng.normal(size=(31, 2))
    book[::2] = book[::2, ::-1]  # many on one edge, half of them the other way round
    check(pack(book, worst_ratio=9.0), book)
    # A strip, whose waste falls along it: in exact order it would be taken one fan a round.
    n = 4000
    x = np.arange(n + 2, dtype=np.float32)
    points = np.stack([x, np.where(x % 2, 1 + x / n, 0), 0 * x], 1).astype(np.float32)
    strip = np.stack([points[:-2], points[1:-1], points[2:]], 1)
    strip[1::2] = strip[1::2, ::-1]
    fans = pack(strip)
    check(fans, strip)
    assert len(strip) / len(fans.triangles) > 2.5
