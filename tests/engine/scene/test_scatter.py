"""Scattered copies: the same for a seed, where they may be, as far apart as they have to be."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree

from engine.scene.scatter import SCATTER_KEYS, Scatter, read_scatter
from engine.scene.table import Table


def _scatter(**values: Any) -> Scatter:
    return read_scatter(Table("a.toml", "scatter", values, SCATTER_KEYS))


RING = {"shape": "ring", "center": [3, 1, -2], "inner": 5, "outer": 20}
BOX = {"shape": "rectangle", "center": [0, 0, 10], "size": [4, 8]}


def test_a_seed_decides_all() -> None:
    one, same, other = (
        _scatter(count=50, area=RING, seed=seed, yaw=[0, 90]).transforms() for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1


def test_places_are_in_the_area_and_not_in_an_exclusion() -> None:
    exclude = [{"shape": "disc", "center": [10, 9, 0], "radius": 6}, BOX]
    places = _scatter(count=2000, area=RING, exclude=exclude).places()
    distance = np.linalg.norm(places - [3, -2], axis=1)
    assert len(places) == 2000 and distance.min() >= 5 and distance.max() <= 20
    assert np.linalg.norm(places - [10, 0], axis=1).min() > 6
    assert (np.abs(places - [0, 10]) > [2, 4]).any(axis=1).all()
    # even: the outer half of the ring's area holds half of what no exclusion touches
    free = places[places[:, 0] < -4]
    near = np.linalg.norm(free - [3, -2], axis=1) < np.sqrt((5**2 + 20**2) / 2)
    free_share = _share(RING, near=np.sqrt((5**2 + 20**2) / 2), left_of=-4)
    assert abs(near.mean() - free_share) < 0.08


def _share(ring: dict[str, Any], near: float, left_of: float) -> float:
    """Of the ring's part with x < left_of: what lies nearer than `near`, by a fine grid."""
    x, z = np.meshgrid(np.linspace(-20, 20, 801), np.linspace(-20, 20, 801))
    distance = np.hypot(x, z)
    inside = (distance >= ring["inner"]) & (distance <= ring["outer"])
    inside &= x + ring["center"][0] < left_of
    return float((distance[inside] < near).mean())


def test_least_distance() -> None:
    scatter = _scatter(count=400, area={"shape": "rectangle", "size": [60, 60]}, least_distance=2)
    places = scatter.places()
    pairs = cKDTree(places).query(places, k=2)[0][:, 1]
    assert len(places) == 400 and pairs.min() >= 2.0
    crowded = _scatter(count=400, area={"shape": "disc", "radius": 5}, least_distance=2).places()
    assert 15 < len(crowded) < 30  # a disc of radius 6 has room for at most 36 discs of radius 1
    assert cKDTree(crowded).query(crowded, k=2)[0][:, 1].min() >= 2.0


def test_scale_yaw_and_ground() -> None:
    transforms = _scatter(count=500, area=RING, scale=[0.5, 2.0], yaw=[30, 60], seed=3).transforms()
    linear = transforms[:, :3, :3]
    size = np.cbrt(np.linalg.det(linear))
    assert 0.5 <= size.min() < 0.6 and 1.9 < size.max() <= 2.0
    # +X turned about +Y by a positive angle goes to -Z
    yaw = np.degrees(np.arctan2(-linear[:, 2, 0], linear[:, 0, 0]))
    assert 30 <= yaw.min() < 32 and 58 < yaw.max() <= 60
    np.testing.assert_allclose(linear[:, 1], size[:, None] * [0, 1, 0], atol=1e-12)
    np.testing.assert_array_equal(transforms[:, 1, 3], 1)


@pytest.mark.parametrize("count", [0, 1])
def test_none_and_one(count: int) -> None:
    assert _scatter(count=count, area=RING, least_distance=1).transforms().shape == (count, 4, 4)
