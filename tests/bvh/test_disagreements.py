"""Reasons for disagreements of two tracers, on two triangles whose geometry decides them."""

from typing import Any

import numpy as np

from bvh.disagreements import find, meet
from bvh.gpu.trace_rays import HIT
from bvh.rays import MISS_ID, make_rays

# Object 0: a square of two triangles at z 1; object 1: its copy in place; object 2: at z 3.
SQUARE = np.array([[[0, 0, 1], [1, 0, 1], [1, 1, 1]], [[0, 0, 1], [1, 1, 1], [0, 1, 1]]], float)
CORNERS = np.stack([SQUARE, SQUARE, SQUARE + [0, 0, 2]])


def triangles(objects: Any, primitives: Any) -> Any:
    return CORNERS[objects, primitives]


def hit(object_: int, primitive: int, t: float) -> Any:
    record = np.zeros(1, HIT.dtype)
    record["object"], record["primitive"], record["t"] = object_, primitive, t
    return record


MISS = hit(MISS_ID, MISS_ID, np.inf)


def reasons(x: float, y: float, first: Any, second: Any, any_hit: bool = False, **ends: Any) -> Any:
    rays = make_rays((x, y, 0), (0, 0, 1), **ends)
    return [item.reason for item in find(rays, first, second, triangles, any_hit)]


def test_each_reason() -> None:
    assert reasons(0.6, 0.3, hit(0, 0, 1), hit(0, 0, 1)) == []
    assert reasons(0.5, 0.5, hit(0, 0, 1), hit(0, 1, 1)) == ["shared edge"]
    assert reasons(0.6, 0.3, hit(0, 0, 1), hit(1, 0, 1)) == ["overlap"]
    assert reasons(0.5, 0.0, hit(0, 0, 1), hit(2, 0, 3)) == ["edge"]
    assert reasons(0.5, 1e-7, MISS, hit(0, 0, 1)) == ["edge"]
    assert reasons(0.6, 0.3, hit(0, 0, 1), MISS, t_max=np.float32(1)) == ["limit"]
    assert reasons(0.6, 0.3, hit(0, 0, 1), MISS, t_min=1, t_max=9) == ["limit"]


def test_what_cannot_be_explained_is_said_so() -> None:
    assert reasons(0.6, 0.3, hit(0, 0, 1), hit(2, 0, 3)) == ["unexplained"]
    assert reasons(0.6, 0.3, hit(0, 0, 1), MISS) == ["unexplained"]
    assert reasons(0.5, 1e-3, hit(0, 0, 1), MISS) == ["unexplained"]
    assert reasons(0.6, 0.3, hit(0, 0, 1), hit(0, 0, 1.001)) == ["unexplained"]
    # A hit that is reported on a triangle that the ray passes by.
    assert reasons(0.6, 0.3, hit(0, 1, 1), MISS) == ["unexplained"]


def test_any_hit_compares_hit_and_miss_only() -> None:
    assert reasons(0.6, 0.3, hit(0, 0, 1), hit(2, 0, 3), any_hit=True) == []
    assert reasons(0.6, 0.3, hit(0, 0, 1), MISS, any_hit=True) == ["unexplained"]
    assert reasons(0.5, 0.0, hit(0, 0, 1), MISS, any_hit=True) == ["edge"]


def test_distances_are_in_roundings() -> None:
    rays = make_rays((0.6, 0.3, 0), (0, 0, 2))
    contact = meet(rays, hit(0, 0, 0.5), triangles)
    assert contact.t == 0.5
    size = np.hypot(0.6, 0.3) + 1 + 1  # origin, distance travelled, largest coordinate
    assert np.isclose(contact.edge_roundings, 0.3 / np.sqrt(2) / (2.0**-24 * size), rtol=1e-6)
    text = str(find(rays, hit(0, 0, 0.5), MISS, triangles, False)[0])
    assert text == "ray 0: object 0 triangle 0 t 0.5 | miss: unexplained"
