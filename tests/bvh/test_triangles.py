import numpy as np

from bvh.triangles import is_degenerate, keep_usable, triangle_bounds

UNIT = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_degenerate_means_an_exactly_zero_cross_product() -> None:
    line = [[0, 0, 0], [1, 1, 1], [3, 3, 3]]
    point = [[2, 2, 2]] * 3
    tiny = np.array(UNIT) * 1e-15  # an area far below any epsilon, but not zero
    sliver = [[0, 0, 0], [1, 0, 0], [0.5, 1e-20, 0]]
    triangles = np.array([UNIT, line, point, tiny, sliver], np.float32)
    assert is_degenerate(triangles).tolist() == [False, True, True, False, False]


def test_dropped_are_counted() -> None:
    bad = np.array([UNIT, UNIT, UNIT, UNIT, [[1, 1, 1]] * 3], np.float32)
    bad[1, 0, 0] = np.nan
    bad[3, 2, 2] = -np.inf
    kept = keep_usable(bad, np.arange(5, dtype=np.uint32), np.arange(5, 10, dtype=np.uint32))
    assert kept.geometry.tolist() == [0, 2]
    assert kept.primitive.tolist() == [5, 7]
    assert (kept.dropped_nonfinite, kept.dropped_degenerate) == (2, 1)


def test_huge_coordinates_are_kept() -> None:
    huge = np.array([UNIT], np.float32) * np.float32(1e30)
    assert not is_degenerate(huge).any()


def test_bounds(rng: np.random.Generator) -> None:
    triangles = rng.normal(size=(50, 3, 3)).astype(np.float32)
    bounds = triangle_bounds(triangles)
    assert (bounds[:, 0] == triangles.min(axis=1)).all()
    assert (bounds[:, 1] == triangles.max(axis=1)).all()
