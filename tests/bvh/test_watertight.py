"""Closed meshes have no holes and no double walls: rays at edges, vertices and nearly so.

Counts are of all crossings ahead of the ray. From the centre of a star-shaped mesh every ray
crosses exactly once; from inside any closed mesh an odd number of times, from outside an even
number, whatever edge or vertex it was aimed at.
"""

import numpy as np
import pytest
import trimesh

from bvh.rays import make_rays


def targets_of(triangles):
    """Vertices and edge midpoints (in float32), and points a float32 step beside them."""
    corners = triangles.reshape(-1, 3)
    middles = ((triangles + np.roll(triangles, 1, 1)) * np.float32(0.5)).reshape(-1, 3)
    points = np.unique(np.concatenate([corners, middles]), axis=0)
    beside = np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(-np.inf))
    return np.concatenate([points, *beside])


def icosphere(scale, shift):
    mesh = trimesh.creation.icosphere(subdivisions=2)
    points = (mesh.vertices * scale + shift).astype(np.float32)
    return points[mesh.faces], np.asarray(shift, np.float32)


@pytest.fixture(scope="module")
def spot(shared_scenes):
    """A closed cow: [5856, 3, 3]."""
    mesh = trimesh.load(shared_scenes / "spot.obj", process=False, force="mesh")
    triangles = mesh.vertices.astype(np.float32)[mesh.faces]
    welded = trimesh.Trimesh(mesh.vertices, mesh.faces, merge_tex=True, merge_norm=True)
    assert welded.is_watertight
    return triangles


@pytest.fixture(scope="module")
def scene_of(built):
    """`scene_of(key, triangles, **options)`: built once for all tracers and tests."""
    scenes = {}

    def get(key, triangles, **options):
        key = (key, *options.items())
        if key not in scenes:
            scenes[key] = built.scene(triangles, **options)
        return scenes[key]

    return get


PLACES = [
    (1.0, (0, 0, 0)),
    (1e-3, (0, 0, 0)),
    (1e3, (0, 0, 0)),
    (1.0, (10, -7, 3)),
    (0.5, (1000, 2000, -500)),
]


OPTIONS = [{}, {"nodes": "fp32", "leaf": 1}, {"nodes": "fp16"}, {"leaf": 4}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_from_the_centre_every_ray_crosses_once(tracers, scene_of, place, options):
    triangles, center = icosphere(*place)
    rays = make_rays(center, targets_of(triangles) - center)
    scene = scene_of(place, triangles, **options)
    got = tracers(scene, rays, count_all=True)
    assert not got.overflows.any()
    assert (got.crossings == 1).all()
    assert tracers(scene, rays).hit.all()
    assert tracers(scene, rays, any_hit=True).hit.all()


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_from_outside_crossings_are_even(tracers, scene_of, rng, place):
    triangles, center = icosphere(*place)
    targets = targets_of(triangles)
    away = rng.normal(size=targets.shape)
    away *= 3 * place[0] / np.linalg.norm(away, axis=1, keepdims=True)
    origin = (center + away).astype(np.float32)
    scene = scene_of(place, triangles)
    got = tracers(scene, make_rays(origin, targets - origin), count_all=True)
    assert set(np.unique(got.crossings)) <= {0, 2}
    assert (got.crossings == 2).mean() > 0.5


def test_axis_parallel_rays_at_every_vertex_of_a_cube_grid(tracers, built):
    # Subdivided cube: vertices and edges on axis-parallel planes, rays exactly through them.
    mesh = trimesh.creation.box().subdivide().subdivide().subdivide()
    triangles = mesh.vertices.astype(np.float32)[mesh.faces]
    scene = built.scene(triangles)
    steps = np.arange(-3, 4) / 8
    for axis in range(3):
        for sign in (1, -1):
            origin = np.zeros((49, 3))
            plane = [(axis + 1) % 3, (axis + 2) % 3]
            origin[:, plane] = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
            direction = sign * np.eye(3)[axis]
            assert (
                tracers(scene, make_rays(origin, direction), count_all=True).crossings == 1
            ).all()
            origin[:, axis] = -2 * sign
            got = tracers(scene, make_rays(origin, direction), count_all=True)
            assert (got.crossings == 2).all()


@pytest.mark.parametrize("scale", [1.0, 1e-3, 300.0])
def test_a_concave_mesh_is_odd_from_inside_and_even_from_outside(
    tracers, scene_of, rng, spot, scale
):
    triangles = spot * np.float32(scale)
    scene = scene_of(("spot", scale), triangles)
    targets = targets_of(triangles)
    targets = targets[rng.choice(len(targets), 6000, replace=False)]
    inside = np.array([0, 0.2, 0.0], np.float32) * np.float32(scale)
    got = tracers(scene, make_rays(inside, targets - inside), count_all=True)
    assert (got.crossings % 2 == 1).all()
    assert got.crossings.max() > 1  # horns and legs
    outside = (rng.normal(size=targets.shape) * 0.1 + (0, 0.5, 3)).astype(np.float32) * scale
    got = tracers(scene, make_rays(outside, targets - outside), count_all=True)
    assert (got.crossings % 2 == 0).all() and (got.crossings > 0).mean() > 0.5


def test_an_instance_transform_keeps_the_mesh_closed(tracers, built, rng):
    # All triangles of an instance see the same rounded object-space ray.
    triangles, _ = icosphere(1.0, (0, 0, 0))
    linear = np.linalg.qr(rng.normal(size=(3, 3)))[0] @ np.diag([3, 0.2, -1])
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = linear, (5, -20, 7)
    targets = targets_of(triangles) @ linear.T + matrix[:3, 3]
    rays = make_rays(matrix[:3, 3], targets - matrix[:3, 3])
    got = tracers(built.scene(triangles, matrix), rays, count_all=True)
    assert (got.crossings == 1).all()
