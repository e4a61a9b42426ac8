"""A skinned and morphed figure, and boxes on a node that turns: what pixels show, what the floor
reflects and where shadows fall is the pose, worked out here in double precision."""

from typing import Any

import numpy as np
import pytest

from bvh.rays import MISS_ID
from bvh.validate import validate
from passes.rays import REFLECTION, SHADOW

UPDATES = ("refit", "rebuild", "policy")


@pytest.mark.parametrize("time", [0.7, 1.3])
@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("update", ["refit", "rebuild"])
def test_a_frame_is_that_of_a_still_scene_in_that_pose(
    figure: Any, same_frames: Any, update: str, gbuffer: str, time: float
) -> None:
    moving = figure.frame(figure.scene, update=update, gbuffer=gbuffer)
    found = figure.see(figure.show(moving, time))
    wanted = figure.see(figure.show(figure.frame(figure.still(time), gbuffer=gbuffer), None))
    same_frames(found, wanted)
    # So that the test can tell: at rest much else is seen, reflected and lit.
    rest = figure.see(figure.show(moving, None))
    assert (found.objects != rest.objects).mean() > 0.05
    both = found.mirrored.keys() & rest.mirrored.keys()
    assert np.mean([found.mirrored[k][0] != rest.mirrored[k][0] for k in both]) > 0.02
    both = found.lit.keys() & rest.lit.keys()
    assert np.mean([found.lit[k] != rest.lit[k] for k in both]) > 0.02


@pytest.mark.parametrize("group", ["static", "object"])
@pytest.mark.parametrize("update", UPDATES)
def test_every_ray_meets_the_pose(figure: Any, update: str, group: str) -> None:
    """Each reflection and shadow ray of a frame with every triangle, one by one."""
    time = 0.9
    frame = figure.show(figure.frame(figure.scene, group, update=update), time)
    posed = figure.bodies(time)
    corners = np.concatenate([body.corners for body in posed])
    owners = np.repeat([body.name for body in posed], [len(body.faces) for body in posed])
    owners = np.append(owners, "")
    names = [i.name for i in frame.scene.prepared.scene.instances] + [""]

    rays = frame.data.read_records(REFLECTION)
    hits = frame.data.read_results(REFLECTION, rays)
    origin, direction = (rays[n].astype(np.float64) for n in ("origin", "direction"))
    nearest, t, certain = figure.first_hits(origin, direction, corners)
    met = np.array(names)[np.where(hits["object"] == MISS_ID, -1, hits["object"].astype(int))]
    np.testing.assert_array_equal(met[certain], owners[nearest][certain])
    hit = certain & (nearest >= 0)
    np.testing.assert_allclose(hits["t"][hit], t[hit], rtol=1e-3, atol=1e-4)
    assert certain.mean() > 0.95 and {"figure", "box", "still"} <= set(met[certain])

    rays = frame.data.read_records(SHADOW)
    lit = frame.data.read_results(SHADOW, rays) == 1
    origin = rays["origin"].astype(np.float64)
    direction = figure.light_points(frame.scene.prepared.scene, rays) - origin
    blocker, _, certain = figure.first_hits(origin, direction, corners, 1.0)
    np.testing.assert_array_equal(lit[certain], blocker[certain] < 0)
    assert certain.mean() > 0.9
    assert {"figure", "box", "mirrored"} <= set(owners[blocker[certain & ~lit]])


@pytest.mark.parametrize("update", UPDATES)
def test_what_lies_on_the_gpu_is_a_valid_structure(figure: Any, update: str) -> None:
    frame = figure.frame(figure.scene, update=update)
    for time in (0.6, 1.1, 1.9):
        bvh = figure.show(frame, time).bvh()
        assert validate(bvh) == [] and frame.moving.messages() == []


def test_vertices_are_the_poses_to_a_rounding(figure: Any) -> None:
    """Bind pose, joints, weights and targets, on the GPU and in the scene posed on the CPU."""
    from engine.scene.pose import posed

    animation = figure.scene.animation
    for time in (0.0, 0.5, 0.9, 1.0, 1.7, 2.0):
        bodies = {body.name: body for body in figure.bodies(time)}
        there = posed(figure.scene, animation.clip(figure.clip), time)
        for item in there.instances:
            mesh, body = there.meshes[item.mesh], bodies[item.name]
            linear, move = item.transform[:3, :3], item.transform[:3, 3]
            found = mesh.positions @ linear.T + move
            np.testing.assert_allclose(found, body.positions, atol=2e-6, err_msg=item.name)
            normals = mesh.normals @ np.linalg.inv(linear)
            normals /= np.linalg.norm(normals, axis=1, keepdims=True)
            if item.name != "figure":  # whose displaced normals the file leaves to the reader
                np.testing.assert_allclose(normals, body.normals, atol=1e-5)
