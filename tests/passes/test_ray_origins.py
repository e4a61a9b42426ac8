"""No acne, no leaks: where secondary rays start, against what geometry says they must meet."""

from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.rays import MISS_ID
from engine.scene.scene import Instance

DISTANCES = [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4]
# A corner of the sphere is misplaced by at most half an ULP of the distance from the origin; the
# facets then tilt by about that over their size, and a ray that close to a facet's plane may be
# right to hit its neighbour.
GRAZING = 0.02


def cosines(drawn: Any, rays: Any, directions: Any) -> Any:
    """Of the angles at the visible surface's geometric normal, for rays of pixel `rays`."""
    from engine.scene.upload import decode_normals

    surface = drawn.frame.data.read_texture("surface")
    normals = decode_normals(np.ascontiguousarray(surface[..., 1]).reshape(-1))
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    return (normals[rays].astype(np.float64) * unit).sum(1)


@pytest.mark.parametrize("placed", ["vertices", "instance"])
@pytest.mark.parametrize("distance", DISTANCES)
def test_a_convex_sphere_never_shadows_or_reflects_itself(
    kit: Any, draw: Any, distance: float, placed: str
) -> None:
    center = distance * np.array([0.6, -0.48, 0.64])
    mesh = kit.sphere(center if placed == "vertices" else 0.0, rings=8)
    transform = np.eye(4)
    if placed == "instance":
        transform[:3, 3] = center
    scene = kit.scene(
        [mesh],
        [kit.grey(roughness=0.0, metallic=0.5)],
        instances=[Instance("ball", 0, transform)],
        eye=center + [0, 0, 4],
        target=center,
        light=kit.lamp(center + [1.5, 2.0, 2.0], 0.5, [-1.5, -2, -2]),
    )
    # Without grouping, an instance stays one.
    drawn = draw(scene, 48, 48, group="object" if placed == "instance" else "static")
    assert drawn.stats.valid
    rays, lit = drawn.shadows
    primary = rays["slot"] % 2 == 0
    rays, lit = rays[primary], lit[primary]
    assert len(rays) > 300
    to_light = drawn.light_points(rays) - rays["origin"]
    cosine = cosines(drawn, rays["slot"] // 2, to_light)
    # A smooth normal may face the light where the facet does not: no ray goes into the surface.
    assert (cosine > -1e-3 - 1e-6 * distance).all()
    steep = cosine > GRAZING
    assert steep.sum() > 200 and lit[steep].all()
    # Every point in front of the light sent a ray.
    objects = drawn.aov("object").ravel() >= 0
    assert objects.sum() * 0.5 < len(rays) <= objects.sum()
    bounces, hits = drawn.reflections
    steep = cosines(drawn, bounces["pixel"], bounces["direction"].astype(float)) > GRAZING
    assert steep.sum() > 300 and (hits["object"][steep] == MISS_ID).all()


@pytest.mark.parametrize("axis,nodes", [(0, "fp32"), (1, "auto"), (2, "auto")])
@pytest.mark.parametrize("half,height", [(3.0, 0.0), (500.0, 0.0), (500.0, 0.125), (50.0, 1e4)])
def test_a_wide_floor_in_grazing_light(
    kit: Any, draw: Any, half: float, height: float, axis: int, nodes: str
) -> None:
    # At height 0 the corners have no error along the normal: the triangle test has.
    turn = np.roll(np.eye(3), axis, axis=1)
    up = turn[1]
    floor = kit.quad(
        turn.T @ [-half, height, half], turn.T @ [2 * half, 0, 0], turn.T @ [0, 0, -2 * half]
    )
    light = kit.lamp(turn.T @ [30.0, height + 2, 5.0], 0.1, turn.T @ [-1.0, -0.1, 0.0])
    scene = kit.scene(
        [floor],
        [kit.grey(roughness=0.0, metallic=0.5)],
        eye=turn.T @ [0.0, height + 0.2, 2.0],
        target=turn.T @ [0.0, height, 0.0],
        up=tuple(turn.T @ [0.0, 1.0, 0.0]),
        light=light,
    )
    assert up.sum() == 1
    drawn = draw(scene, 32, 32, build=BuildOptions(nodes=nodes))
    rays, lit = drawn.shadows
    assert len(rays) > 300 and lit.all()
    bounces, hits = drawn.reflections
    assert len(bounces) > 300 and (hits["object"] == MISS_ID).all()


@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0), (1e3, 1e-2, 1.0), (1e-3, 1e-3, 1e-3)])
def test_a_turned_and_stretched_floor(kit: Any, draw: Any, scale: Any, rng: Any) -> None:
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    if np.linalg.det(turn) < 0:
        turn[:, 0] *= -1
    transform = np.eye(4)
    transform[:3, :3] = turn @ np.diag(scale)
    transform[:3, 3] = [7.0, -3.0, 11.0]
    corner = np.array([-1.0, 0.0, 1.0])
    floor = kit.quad(corner, [2, 0, 0], [0, 0, -2])

    def world(x: float, y: float, z: float) -> Any:
        size = min(scale)
        return transform[:3, 3] + turn @ np.array([x * size, y * size, z * size])

    scene = kit.scene(
        [floor],
        [kit.grey(roughness=0.0, metallic=0.5)],
        instances=[Instance("floor", 0, transform, lifetime="deforming")],
        eye=world(0, 0.2, 0.9),
        target=world(0, 0, 0),
        up=tuple(turn[:, 1]),
        light=kit.lamp(world(3, 0.4, 0.5), 0.01 * min(scale), -turn[:, 0]),
    )
    drawn = draw(scene, 32, 32)
    rays, lit = drawn.shadows
    assert len(rays) > 200 and lit.all()
    bounces, hits = drawn.reflections
    assert len(bounces) > 200 and (hits["object"] == MISS_ID).all()


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("y_fov", [0.6, 1e-3])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_no_light_leaks_at_the_foot_of_a_wall(
    kit: Any, draw: Any, side: float, y_fov: float, offset: float
) -> None:
    # The wall stands at z = 0, the light is behind it (z < 0); `side` is the viewer's.
    move = np.array([offset, offset, offset])
    wall = kit.quad(move + [-4, 0, 0], [8, 0, 0], [0, 1.5, 0])
    floor = kit.quad(move + [-20, 0, 20], [40, 0, 0], [0, 0, -40])
    scene = kit.scene(
        [wall, floor],
        eye=move + [0.3, 0.4, side * 1.5],
        target=move + [0.2, 0.0, 0.0],
        y_fov=y_fov,
        light=kit.lamp(move + [0.5, 1.2, -2.0], 0.2, [0, -1, 1.5]),
    )
    drawn = draw(scene, 48, 48)
    assert drawn.stats.valid
    objects = drawn.aov("object").ravel()
    assert set(objects) == {0, 1}
    rays, lit = drawn.shadows
    of_wall = objects[rays["slot"] // 2] == 0
    if side > 0:
        # The side that looks away from the light gets none, whatever a shadow ray would find.
        assert not of_wall.any()
    else:
        assert of_wall.sum() == (objects == 0).sum() and lit[of_wall].all()
    origin = rays["origin"][~of_wall].astype(np.float64) - move
    light = drawn.light_points(rays[~of_wall]) - move
    assert len(origin) == (objects == 1).sum()
    # Where the segment crosses the wall's plane; it passes over the top or beside the wall or not.
    crosses = origin[:, 2] > 0
    step = origin[:, 2] / np.where(crosses, origin[:, 2] - light[:, 2], 1.0)
    at = origin + step[:, None] * (light - origin)
    blocked = crosses & (np.abs(at[:, 0]) < 4) & (at[:, 1] < 1.5)
    # An origin may sit on either side of the plane within its rounding.
    certain = np.abs(origin[:, 2]) > 1e-5 + 4e-6 * offset
    wrong = certain & (lit[~of_wall] == blocked)
    assert certain.mean() > 0.8 and not wrong.any()
    if side > 0:
        assert blocked[certain].all()
        direct = drawn.radiance.reshape(-1, 3)
        # The light is the only source: all is black but for what uncertain origins let through.
        assert (direct[objects == 0] == 0).all()
