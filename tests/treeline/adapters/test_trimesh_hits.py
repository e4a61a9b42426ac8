"""What `treeline.adapters.trimesh` hits: against what trimesh's users and its own test file expect,
and against three tracers that nobody here wrote."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import trimesh

from treeline.adapters.trimesh import RayMeshIntersector

Make = Callable[..., RayMeshIntersector]
RAYS = 20_000


def spindle(seed: int) -> trimesh.Trimesh:
    """A closed shape of long thin triangles, off the origin."""
    mesh = trimesh.creation.cylinder(radius=0.05, height=4.0, sections=64)
    mesh.apply_transform(trimesh.transformations.random_rotation_matrix(np.full(3, 0.1 * seed)))
    mesh.apply_translation([3.0, -20.0, 0.5])
    return mesh


def soup(seed: int) -> trimesh.Trimesh:
    rng = np.random.default_rng(seed)
    corners = rng.normal(size=(1500, 1, 3)) + 0.2 * rng.normal(size=(1500, 3, 3))
    return trimesh.Trimesh(corners.reshape(-1, 3), np.arange(4500).reshape(-1, 3), process=False)


MESHES: dict[str, Callable[[], trimesh.Trimesh]] = {
    "box": trimesh.creation.box,
    "sphere": lambda: trimesh.creation.icosphere(subdivisions=4),
    "uv sphere": lambda: trimesh.creation.uv_sphere(count=[24, 48]),
    "torus": lambda: trimesh.creation.torus(3.0, 1.0),
    "cone": lambda: trimesh.creation.cone(1.0, 3.0),
    "capsule": lambda: trimesh.creation.capsule(3.0, 0.4),
    "annulus": lambda: trimesh.creation.annulus(0.5, 1.0, 0.2),
    "spindle": lambda: spindle(3),
    "soup": lambda: soup(5),
    "kilometres": lambda: trimesh.creation.torus(3e3, 1e3).apply_translation([1e4, 0, -2e4]),
}


def random_rays(mesh: trimesh.Trimesh, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Towards the mesh from around it, and some away from it."""
    centre, size = mesh.bounds.mean(0), float(np.ptp(mesh.bounds, axis=0).max())
    origins = centre + size * rng.normal(size=(RAYS, 3))
    targets = rng.uniform(*mesh.bounds, size=(RAYS, 3))
    directions = targets - origins
    directions[::10] = rng.normal(size=(len(directions[::10]), 3))
    return origins, directions / np.linalg.norm(directions, axis=1, keepdims=True)


def edge_distance(mesh: trimesh.Trimesh, face: np.ndarray, o: Any, d: Any) -> np.ndarray:
    """[n] how far from an edge of `face` a ray meets its plane, in barycentric weight (negative
    outside), float64."""
    corners = mesh.triangles[face]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    slope = (normal * d).sum(1)
    t = (normal * (corners[:, 0] - o)).sum(1) / np.where(slope == 0, 1, slope)
    point = o + t[:, None] * d
    edges = corners[:, [1, 2, 0]] - corners
    area = (normal * normal).sum(1)
    weights = [
        (np.cross(edges[:, i], point - corners[:, i]) * normal).sum(1) / area for i in range(3)
    ]
    return np.where(slope == 0, 0.0, np.min(weights, axis=0))


def check_against(
    mesh: trimesh.Trimesh, ours: np.ndarray, theirs: np.ndarray, o: Any, d: Any
) -> None:
    """Equal, but for rays that pass within float32 rounding of an edge of what either hit, or
    that meet two faces at one place."""
    different = np.flatnonzero(ours != theirs)
    doubtful = np.zeros(len(different), bool)
    for faces in (ours, theirs):
        hit = faces[different] >= 0
        margin = edge_distance(mesh, np.maximum(faces[different], 0), o[different], d[different])
        doubtful |= hit & (np.abs(margin) < 1e-4)
    assert doubtful.all(), (ours[different], theirs[different])
    assert len(different) <= 4


@pytest.mark.parametrize("name", MESHES)
def test_same_faces_as_embree(name: str, make: Make, rng: np.random.Generator) -> None:
    pytest.importorskip("embreex", reason="embreex is not installed here")
    from trimesh.ray.ray_pyembree import RayMeshIntersector as Embree

    mesh = MESHES[name]()
    origins, directions = random_rays(mesh, rng)
    theirs = Embree(mesh).intersects_first(origins, directions).astype(np.int64)
    ray = make(mesh)
    ours = ray.intersects_first(origins, directions)
    assert (theirs >= 0).sum() > RAYS // 10
    check_against(mesh, ours, theirs, origins, directions)
    assert (ray.intersects_any(origins, directions) == (ours >= 0)).all()


@pytest.mark.parametrize("name", MESHES)
def test_same_faces_as_warp(name: str, make: Make, rng: np.random.Generator) -> None:
    wp = pytest.importorskip("warp", reason="warp-lang is not installed here")
    mesh = MESHES[name]()
    origins, directions = random_rays(mesh, rng)
    theirs = warp_first(wp, mesh, origins, directions)
    check_against(
        mesh, make(mesh).intersects_first(origins, directions), theirs, origins, directions
    )


def warp_first(wp: Any, mesh: trimesh.Trimesh, origins: Any, directions: Any) -> np.ndarray:
    """Warp's closest-hit faces on its CPU device, the mesh scaled as the adapter scales it."""
    wp.config.quiet = True

    @wp.kernel
    def first(
        mesh_id: wp.uint64,
        o: wp.array(dtype=wp.vec3),
        d: wp.array(dtype=wp.vec3),
        face: wp.array(dtype=int),
    ) -> None:
        i = wp.tid()
        query = wp.mesh_query_ray(mesh_id, o[i], d[i], 1.0e9)
        face[i] = wp.where(query.result, query.face, -1)

    centre, scale = mesh.bounds.mean(0), 100.0 / mesh.scale

    def vectors(values: Any) -> Any:
        return wp.array(np.asarray(values, np.float32), dtype=wp.vec3, device="cpu")

    held = wp.Mesh(
        points=vectors((mesh.vertices - centre) * scale),
        indices=wp.array(mesh.faces.astype(np.int32).ravel(), dtype=int, device="cpu"),
    )
    face = wp.zeros(len(origins), dtype=int, device="cpu")
    inputs = [held.id, vectors((origins - centre) * scale), vectors(directions), face]
    wp.launch(first, dim=len(origins), inputs=inputs, device="cpu")
    return face.numpy().astype(np.int64)


def test_one_hit_through_every_vertex(make: Make) -> None:
    for mesh in (trimesh.creation.box(), trimesh.creation.icosphere(subdivisions=3)):
        origins, directions = np.zeros_like(mesh.vertices), np.array(mesh.vertices)
        ray = make(mesh)
        assert ray.intersects_any(origins, directions).all()
        _, owner, _ = ray.intersects_location(origins, directions)
        assert (np.bincount(owner, minlength=len(origins)) == 1).all()


def test_one_hit_through_every_edge(make: Make) -> None:
    mesh = trimesh.creation.icosphere(subdivisions=3)
    middle = mesh.vertices[mesh.edges_unique].mean(1)
    _, owner, _ = make(mesh).intersects_location(np.zeros_like(middle), middle)
    assert (np.bincount(owner, minlength=len(middle)) == 1).all()


@pytest.mark.parametrize("scale", [1e-4, 0.1, 1.0, 10.0, 1e4, 1e8])
@pytest.mark.parametrize("scale_to_box", [False, True])
def test_two_hits_through_a_box_from_its_surface(
    make: Make, scale: float, scale_to_box: bool
) -> None:
    mesh = trimesh.creation.box().subdivide().subdivide()
    mesh.apply_scale(scale)
    ray = make(mesh, scale_to_box=scale_to_box)
    places, _, _ = ray.intersects_location([[0, 0, scale / 2]], [[0, 0, -1.0]])
    assert np.allclose(places[:, 2], [scale / 2, -scale / 2], rtol=1e-15)


@pytest.mark.parametrize(("gap", "hits"), [(0.0, 2), (3e-7, 2), (1e-5, 4)])
def test_walls_closer_than_the_merge_distance_are_one(make: Make, gap: float, hits: int) -> None:
    inner = trimesh.creation.box()
    outer = trimesh.creation.box(extents=np.full(3, 1 + 2 * gap * inner.scale))
    ray = make(trimesh.util.concatenate([inner, outer]))
    places, _, _ = ray.intersects_location([[0.1, 0.2, -3]], [[0, 0, 1]])
    assert len(places) == hits


def test_right_faces_from_very_far_away(make: Make, rng: np.random.Generator) -> None:
    mesh = trimesh.creation.icosphere(subdivisions=4)
    face = rng.integers(0, len(mesh.faces), 500)
    targets = mesh.triangles_center[face]
    side = mesh.face_normals[face] + 0.3 * rng.normal(size=(500, 3))
    origins = targets + 1e6 * side / np.linalg.norm(side, axis=1, keepdims=True)
    towards = targets - origins
    facing = (towards * mesh.face_normals[face]).sum(1) < -0.3 * 1e6
    found = make(mesh).intersects_first(origins, towards)
    assert facing.sum() > 400 and np.array_equal(found[facing], face[facing])


def test_nothing_behind_the_origin(make: Make) -> None:
    ray = make(trimesh.creation.box())
    above, up = [[0.1, 0.2, 0.5 + 1e-6]], [[0, 0, 1.0]]  # within the distance rays start back
    assert not ray.intersects_any(above, up)[0]
    assert ray.intersects_first(above, up)[0] == -1
    places, _, _ = ray.intersects_location(above, [[0, 0, -1.0]])
    assert np.allclose(places[:, 2], [0.5, -0.5])


def test_locations_are_exact_from_far_away(make: Make) -> None:
    mesh = trimesh.creation.box()
    grid = trimesh.util.grid_linspace(mesh.bounds[:, :2] * 1.02, 60)
    for distance in (100.0, 1e5):
        origins = np.column_stack([grid, np.full(len(grid), -distance)])
        directions = np.tile([0, 0, 1.0], (len(grid), 1))
        places, owner, _ = make(mesh).intersects_location(origins, directions)
        assert len(places) > 6000
        assert np.array_equal(places[:, :2], origins[owner][:, :2])
        assert np.isclose(places[:, 2:], mesh.bounds[:, 2], rtol=0, atol=1e-10).any(1).all()


def test_locations_lie_on_their_faces(make: Make, rng: np.random.Generator) -> None:
    mesh = trimesh.creation.torus(3.0, 1.0)
    origins, directions = random_rays(mesh, rng)
    places, owner, tri = make(mesh).intersects_location(origins, directions)
    offset = ((places - mesh.triangles[tri, 0]) * mesh.face_normals[tri]).sum(1)
    assert np.abs(offset).max() < 1e-12
    t = ((places - origins[owner]) * directions[owner]).sum(1)
    order = np.lexsort((np.arange(len(t)), owner))
    same = owner[order][1:] == owner[order][:-1]
    assert (np.diff(t[order])[same] > 0).all()  # hits of a ray come near to far


def test_hit_counts_equal_the_plain_tracers(make: Make, rng: np.random.Generator) -> None:
    pytest.importorskip("rtree", reason="rtree is not installed here")
    from trimesh.ray.ray_triangle import RayMeshIntersector as Plain

    mesh = trimesh.creation.torus(3.0, 1.0)
    origins, directions = (a[:1500] for a in random_rays(mesh, rng))
    ours = make(mesh).intersects_location(origins, directions)
    theirs = Plain(mesh).intersects_location(origins, directions)

    def rows(found: Any) -> Any:
        order = np.lexsort((found[2], found[1]))
        return found[0][order], found[1][order], found[2][order]

    for a, b in zip(rows(ours), rows(theirs), strict=True):
        assert np.allclose(a, b)


def test_contains_inside_outside_and_cavity(make: Make, rng: np.random.Generator) -> None:
    cube = trimesh.creation.box()
    assert make(cube).contains_points(cube.vertices / 1.5).all()
    assert not make(cube).contains_points(cube.vertices * 1.5).any()
    hole = trimesh.creation.box(extents=[0.1] * 3)
    hole.invert()
    hollow = make(trimesh.util.concatenate([cube, hole]))
    assert hollow.contains_points([[0, 0, 0], [0.3, 0, 0]]).tolist() == [False, True]
    sphere = trimesh.creation.icosphere(subdivisions=3)
    points = rng.uniform(-1.1, 1.1, size=(2000, 3))
    radius = np.linalg.norm(points, axis=1)
    clear = (radius < 0.98) | (radius > 1.0)
    assert np.array_equal(make(sphere).contains_points(points)[clear], radius[clear] < 0.98)
