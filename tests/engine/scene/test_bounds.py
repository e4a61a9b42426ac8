"""World boxes of many instances, and what a beam of rays meets, against going through them all."""

from typing import Any

import numpy as np

from engine.scene.beam import beam_distances
from engine.scene.mesh import Mesh, make_mesh
from engine.scene.scene import Instance, scene_bounds


def _scene(rng: Any) -> tuple[list[Mesh], list[Instance]]:
    """Three clouds of triangles, the last without any, and 60 turned and sheared copies."""
    meshes = [
        make_mesh("a", rng.normal(size=(30, 3)), np.arange(30).reshape(-1, 3)),
        make_mesh("b", rng.normal(size=(9, 3)) + [5, 0, 0], np.arange(6).reshape(-1, 3)),
        make_mesh("none", rng.normal(size=(3, 3)) * 1e6, np.zeros((0, 3), np.uint32)),
    ]
    instances = []
    for i in range(60):
        matrix = np.eye(4)
        matrix[:3, :3] = rng.normal(size=(3, 3))
        matrix[:3, 3] = rng.normal(size=3) * (1 + i % 3)
        instances.append(Instance(f"{i}", i % 3, matrix))
    return meshes, instances


def test_bounds_are_those_of_every_vertex(rng: Any) -> None:
    for _ in range(5):
        meshes, instances = _scene(rng)
        corners = []
        for item in instances:
            mesh = meshes[item.mesh]
            points = mesh.positions[mesh.triangles.ravel()].astype(np.float64)
            corners.append(points @ item.transform[:3, :3].T + item.transform[:3, 3])
        every = np.concatenate(corners)
        expected = [every.min(axis=0), every.max(axis=0)]
        np.testing.assert_allclose(scene_bounds(meshes, instances), expected, atol=1e-10)
    assert (scene_bounds(meshes[2:], [Instance("none", 0, np.eye(4))]) == 0).all()
    assert (scene_bounds(meshes, []) == 0).all()


def test_a_beam_meets_the_nearest_of_all_instances(rng: Any) -> None:
    hits = 0
    for _ in range(20):
        meshes, instances = _scene(rng)
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        origins = rng.normal(size=(3, 3)) * 0.1 - 4 * direction
        together = beam_distances(meshes, instances, direction, origins)
        alone = [beam_distances(meshes, [item], direction, origins) for item in instances]
        np.testing.assert_allclose(together, np.min(alone, axis=0))
        for i, origin in enumerate(origins):
            exact = min(_hit(meshes, item, origin, direction) for item in instances)
            assert np.isclose(together[i], exact) or together[i] == exact
            hits += np.isfinite(exact)
    assert hits > 10


def _hit(meshes: list[Mesh], item: Instance, origin: np.ndarray, direction: np.ndarray) -> float:
    """Distance to the instance's first triangle, each solved as three equations."""
    mesh = meshes[item.mesh]
    points = mesh.positions @ item.transform[:3, :3].T + item.transform[:3, 3]
    found = np.inf
    for a, b, c in points[mesh.triangles]:
        u, v, t = np.linalg.solve(np.stack([b - a, c - a, -direction], axis=1), origin - a)
        if u >= 0 and v >= 0 and u + v <= 1 and t > 0:
            found = min(found, t)
    return found
