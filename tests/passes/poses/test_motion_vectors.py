"""Motion vectors of a figure that bends, bulges and walks and of boxes that are carried: finite
differences of the pose in double precision, projected by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.scene.camera import look_at

BEFORE, AFTER = 0.9, 1.0


def project(camera: Any, points: Any, size: tuple[int, int]) -> Any:
    """[n, 2] pixels, from the upper left corner of the picture."""
    local = (points - camera.position) @ camera.transform[:3, :3]
    scale = size[1] / 2 / np.tan(camera.y_fov / 2) / -local[:, 2]
    return np.stack([size[0] / 2 + local[:, 0] * scale, size[1] / 2 - local[:, 1] * scale], 1)


@pytest.mark.parametrize("update", ["refit", "rebuild"])
@pytest.mark.parametrize("moving_camera", [False, True])
def test_motion_is_the_difference_of_two_poses(
    figure: Any, update: str, moving_camera: bool
) -> None:
    frame = figure.frame(figure.scene, motion=True, update=update)
    cameras = [figure.scene.camera] * 2
    if moving_camera:
        eye = cameras[0].position + [0.2, -0.1, 0.15]
        cameras[1] = look_at(eye, np.array([0.0, 0.9, 0.1]), cameras[0].y_fov)
    figure.show(frame, BEFORE, camera=cameras[0])
    figure.show(frame, AFTER, camera=cameras[1])
    motion = frame.aov("motion")
    words = frame.data.read_texture("visibility").reshape(-1, 4)
    names = [i.name for i in frame.scene.prepared.scene.instances]
    uv = np.ascontiguousarray(words[:, 2:]).view(np.float32).astype(float)
    weights = np.c_[1 - uv.sum(axis=1), uv]
    before, after = ({b.name: b for b in figure.bodies(t)} for t in (BEFORE, AFTER))
    seen, largest = set(), 0.0
    for number, name in enumerate(names):
        here = words[:, 0] == number
        if not here.any():
            continue
        triangles = words[here, 1].astype(int)
        was, now = (
            np.einsum("nk,nkj->nj", weights[here], bodies[name].corners[triangles])
            for bodies in (before, after)
        )
        expected = project(cameras[1], now, figure.size) - project(cameras[0], was, figure.size)
        np.testing.assert_allclose(motion.reshape(-1, 2)[here], expected, atol=2e-2, err_msg=name)
        seen.add(name)
        largest = max(largest, np.abs(expected).max())
    assert {"figure", "box", "still", "floor"} <= seen and largest > 2
    still = {"still", "floor"} if not moving_camera else set()
    for number, name in enumerate(names):
        here = (words[:, 0] == number).reshape(motion.shape[:2])
        assert name not in still or not motion[here].any()


def test_a_pose_shown_again_has_no_motion(figure: Any) -> None:
    frame = figure.frame(figure.scene, motion=True)
    camera = replace(figure.scene.camera)
    for _ in range(2):
        figure.show(frame, 1.6, camera=camera)
    assert not frame.aov("motion").any()
