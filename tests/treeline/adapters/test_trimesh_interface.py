"""`treeline.adapters.trimesh` answers as trimesh's own intersectors do: names, shapes, errors, and
meshes that change."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import trimesh

from treeline.adapters.trimesh import RayMeshIntersector

Make = Callable[..., RayMeshIntersector]


def test_shapes_and_types(make: Make) -> None:
    ray = make(trimesh.creation.box())
    o, d = np.array([[0, 0, -5.0], [9, 0, -5]]), np.array([[0, 0, 1.0], [0, 0, 1]])
    tri, owner = ray.intersects_id(o, d)
    assert tri.dtype == owner.dtype == np.int64 and owner.tolist() == [0, 0]
    tri, owner, places = ray.intersects_id(o, d, return_locations=True)
    assert places.dtype == np.float64 and np.array_equal(places, [[0, 0, -0.5], [0, 0, 0.5]])
    places, owner, tri = ray.intersects_location(o, d, multiple_hits=False)
    assert places.shape == (1, 3) and owner.tolist() == [0]
    first = ray.intersects_first(o, d)
    assert first.dtype == np.int64 and first.shape == (2,) and first[1] == -1
    hit = ray.intersects_any(o, d)
    assert hit.dtype == np.bool_ and hit.tolist() == [True, False]
    assert ray.contains_points([[0, 0, 0], [2, 0, 0]]).tolist() == [True, False]


def test_keyword_names_are_trimeshs(make: Make) -> None:
    ray = make(trimesh.creation.box())
    rays = {"ray_origins": [[0.1, 0.2, -5]], "ray_directions": [[0, 0, 3]]}
    tri, _ = ray.intersects_id(**rays, multiple_hits=True, max_hits=1, return_locations=False)
    assert len(tri) == 1
    assert len(ray.intersects_location(**rays, multiple_hits=True)[0]) == 2
    assert ray.intersects_first(**rays)[0] >= 0 and ray.intersects_any(**rays)[0]
    assert ray.contains_points(points=[[0, 0, 0]])[0]


def test_max_hits_counts_hits(make: Make) -> None:
    slabs = [trimesh.creation.box().apply_translation([0, 0, 2.0 * i]) for i in range(6)]
    ray = make(trimesh.util.concatenate(slabs))
    for limit in (0, 1, 5, 12, 100):
        tri, owner = ray.intersects_id([[0.1, 0.2, -9]], [[0, 0, 1]], max_hits=limit)
        assert len(tri) == len(owner) == min(limit, 12)


@pytest.mark.parametrize(
    ("origins", "directions"),
    [
        (np.zeros((2, 3)), np.ones((3, 3))),
        (np.zeros((2, 2)), np.ones((2, 2))),
        (np.zeros(3), np.ones(3)),
        (np.zeros((2, 3, 1)), np.ones((2, 3, 1))),
    ],
)
def test_wrong_shapes_are_value_errors(make: Make, origins: Any, directions: Any) -> None:
    ray = make(trimesh.creation.box())
    for query in (
        ray.intersects_id,
        ray.intersects_location,
        ray.intersects_first,
        ray.intersects_any,
    ):
        with pytest.raises(ValueError):
            query(origins, directions)
    with pytest.raises(ValueError):
        ray.contains_points(np.zeros((4, 2)))


def test_no_hits_and_no_rays_are_still_arrays(make: Make) -> None:
    ray = make(trimesh.creation.icosphere(subdivisions=1))
    for rays in ((np.zeros((0, 3)), np.zeros((0, 3))), ([[0, 0, -5.0]], [[0, 1.0, 0]]), ([], [])):
        found: Any = ray.intersects_id(*rays, return_locations=True)
        assert [a.shape for a in found] == [(0,), (0,), (0, 3)]
        assert ray.intersects_first(*rays).shape == ray.intersects_any(*rays).shape


def test_rays_that_are_no_rays_hit_nothing(make: Make) -> None:
    ray = make(trimesh.creation.box())
    o = np.array([[0, 0, 0], [np.nan, 0, 0], [0, 0, 0], [0, 0, np.inf], [0, 0, -5]], float)
    d = np.array([[0, 0, 0], [0, 0, 1], [np.inf, 0, 0], [0, 0, 1], [0, 0, 1e-300]], float)
    assert (ray.intersects_first(o, d) >= 0).tolist() == [False, False, False, False, True]
    assert ray.intersects_any(o, d).tolist() == [False, False, False, False, True]


def test_empty_and_degenerate_meshes(make: Make) -> None:
    flat = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]], process=False)
    for mesh in (flat, trimesh.Trimesh()):
        ray = make(mesh)
        assert ray.intersects_first([[0, 0, -1]], [[0, 0, 1]]).tolist() == [-1]
        assert len(ray.intersects_location([[0, 0, -1]], [[0, 0, 1]])[0]) == 0


def test_edits_of_the_mesh_are_seen(make: Make) -> None:
    mesh = trimesh.creation.box()
    ray = make(mesh)
    down = ([[0.1, 0.2, 9.0]], [[0, 0, -1.0]])
    assert np.isclose(ray.intersects_location(*down)[0][0, 2], 0.5)
    mesh.apply_scale(3)
    assert np.isclose(ray.intersects_location(*down)[0][0, 2], 1.5)
    mesh.apply_translation([0, 0, 2])
    assert np.isclose(ray.intersects_location(*down)[0][0, 2], 3.5)
    mesh.update_faces(mesh.triangles[:, :, 2].min(1) < 3)
    assert np.isclose(ray.intersects_location(*down)[0][0, 2], 0.5)


def test_structure_is_kept_between_queries(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from treeline.adapters import trimesh as adapter

    builds: list[int] = []
    real = adapter.build_blas

    def build(*args: Any) -> Any:
        builds.append(1)
        return real(*args)

    monkeypatch.setattr(adapter, "build_blas", build)
    mesh = trimesh.creation.box()
    ray = make(mesh)
    for _ in range(3):
        ray.intersects_first([[0, 0, -3]], [[0, 0, 1]])
    assert len(builds) == 1
    mesh.vertices[0] += 0.1
    ray.intersects_first([[0, 0, -3]], [[0, 0, 1]])
    assert len(builds) == 2


def test_copies_and_pickles(make: Make) -> None:
    ray = make(trimesh.creation.box())
    query = ([[0.1, 0.2, -3]], [[0, 0, 1]])
    expected = ray.intersects_first(*query)
    pickled = pickle.loads(pickle.dumps(ray))
    for other in (copy.copy(ray), copy.deepcopy(ray), pickled):
        other._device = ray._device
        assert np.array_equal(other.intersects_first(*query), expected)


def test_as_a_meshs_own_engine(make: Make) -> None:
    mesh = trimesh.creation.icosphere(subdivisions=2)
    mesh.ray = make(mesh)
    assert mesh.contains([[0, 0, 0], [3, 0, 0]]).tolist() == [True, False]
