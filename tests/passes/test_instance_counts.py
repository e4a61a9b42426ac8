"""0, 1 and 100,000 instances of one tree: pixels show those that analytic geometry says."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.scene.scene import Instance
from passes.prepare import prepare

FAST = BuildOptions("lbvh", reinsertion=0)
SIDE = 316  # of the lattice: 99,856 balls, and 144 more in a further row
SPACING, RADIUS = 4.0, 1.0


def lattice(kit: Any, count: int) -> Any:
    """Octahedra |x| + |y| + |z| <= 1 on the plane y = 0, seen from above at a slant."""
    ball = kit.sphere(rings=2, radius=RADIUS, smooth=False)
    axes = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    corner = [
        [0, 2, 4],
        [2, 1, 4],
        [1, 3, 4],
        [3, 0, 4],
        [2, 0, 5],
        [1, 2, 5],
        [3, 1, 5],
        [0, 3, 5],
    ]
    ball = replace(ball, positions=axes.astype(np.float32), triangles=np.array(corner, np.uint32))
    ball = replace(ball, normals=0 * ball.positions, uvs=ball.positions[:, :2].copy())
    ball = replace(ball, colors=np.full((6, 4), 255, np.uint8))
    rows = np.arange(count)
    places = SPACING * np.stack([rows % SIDE - 0.5 * SIDE, 0 * rows, -(rows // SIDE)], 1)
    transforms = np.broadcast_to(np.eye(4), (count, 4, 4)).copy()
    transforms[:, :3, 3] = places
    aim = np.array([0.0, 0.0, -14.0]) if count > 1 else places.sum(axis=0)
    return kit.scene(
        [ball],
        instances=[Instance(f"ball{i}", 0, transforms[i]) for i in range(count)],
        eye=aim + ((0.3, 30.0, 36.0) if count > 1 else (0.3, 3.0, 3.6)),
        target=aim,
        y_fov=0.9,
        light=kit.lamp((40, 200, 0), 1.0, (-0.2, -1, 0), (9e4, 9e4, 9e4)),
        sky=(0.1, 0.2, 0.3),
    )


def first_ball(origin: Any, direction: Any, count: int) -> tuple[Any, Any]:
    """The lattice cell of the first octahedron that each ray [n, 3] meets (-1: none), and whether
    that is certain. |x| + |y| + |z| <= 1 is where four slabs meet."""
    normals = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]], float)
    speed = direction @ normals.T
    found, nearest = np.full(len(origin), -1), np.full(len(origin), np.inf)
    certain = np.ones(len(origin), bool)
    # Each ray passes few cells while it is within a unit of the plane y = 0.
    t0, t1 = ((side - origin[:, 1]) / direction[:, 1] for side in (RADIUS, -RADIUS))
    for at in np.linspace(0, 1, 9):
        points = origin + (t0 + at * (t1 - t0))[:, None] * direction
        column = np.rint(points[:, 0] / SPACING + 0.5 * SIDE).astype(int)
        row = np.rint(-points[:, 2] / SPACING).astype(int)
        cell = row * SIDE + column
        there = (column >= 0) & (column < SIDE) & (row >= 0) & (cell < count)
        place = SPACING * np.stack([column - 0.5 * SIDE, 0 * row, -row], 1)
        near = (-RADIUS - (origin - place) @ normals.T) / speed
        far = (RADIUS - (origin - place) @ normals.T) / speed
        start = np.minimum(near, far).max(axis=1)
        end = np.maximum(near, far).min(axis=1)
        certain &= ~there | (np.abs(end - start) > 2e-3)
        better = there & (start < end) & (start < nearest)
        found[better], nearest[better] = cell[better], start[better]
    return found, certain


@pytest.fixture(scope="module")
def prepared(kit: Any) -> Any:
    known: dict[int, Any] = {}
    return lambda count: known.setdefault(count, prepare(lattice(kit, count), FAST))


def pixel_rays(camera: Any, size: tuple[int, int]) -> tuple[Any, Any]:
    tangent = np.tan(camera.y_fov / 2)
    x = ((np.arange(size[0]) + 0.5) / size[0] * 2 - 1) * tangent * size[0] / size[1]
    y = (1 - (np.arange(size[1]) + 0.5) / size[1] * 2) * tangent
    way = np.stack(np.broadcast_arrays(x[None], y[:, None], -1.0), -1).reshape(-1, 3)
    way = way @ camera.transform[:3, :3].T
    return np.broadcast_to(camera.position, way.shape), way


# A CPU's rasteriser takes too long for 100,000 draws.
@pytest.mark.parametrize(
    ("count", "gbuffer"),
    [(0, "raster"), (0, "rays"), (1, "raster"), (1, "rays"), (100_000, "rays")],
)
def test_each_pixel_shows_the_instance_that_it_should(
    prepared: Any, draw: Any, count: int, gbuffer: str
) -> None:
    scene = prepared(count)
    drawn = draw(scene, 40, 30, gbuffer=gbuffer)
    assert drawn.stats.valid and len(scene.bvh.instances) == count
    objects = drawn.aov("object").reshape(-1)
    wanted, certain = first_ball(*pixel_rays(scene.scene.camera, (40, 30)), count)
    np.testing.assert_array_equal(objects[certain], wanted[certain])
    assert certain.mean() > 0.95 and len(np.unique(wanted[wanted >= 0])) >= min(count, 60)
    assert len(scene.bvh.blas_names) == min(count, 1)
