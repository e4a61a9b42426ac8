"""Candidates of a fit: where they look, and what of a frame's inputs they change."""

import numpy as np
import pytest

from engine.scene.camera import look_at
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FrameInputs
from treeline.ablate_switches import has_holes
from treeline.fit_views import FitRun, candidates, leaf_views, turned
from treeline.scenes import load


def test_a_turned_camera_stays_where_it_is() -> None:
    camera = look_at(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 0.0]), 1.0)
    right = turned(camera, -90.0)
    assert right.position == pytest.approx(camera.position)
    assert right.forward == pytest.approx([1.0, 0.0, 0.0], abs=1e-12)
    assert turned(turned(camera, 120), 240).transform == pytest.approx(camera.transform)
    up = turned(right, 0.0, 30.0)
    assert up.forward == pytest.approx([np.cos(np.pi / 6), 0.5, 0.0], abs=1e-12)
    assert up.transform[:3, 0] == pytest.approx(right.transform[:3, 0])  # about its own right


def test_leaves_are_looked_at_from_near_by() -> None:
    hall = load(None)
    views = leaf_views(hall)
    assert len(views) == 3
    leaves = {i.name: i for i in hall.instances if has_holes(hall, i)}
    assert set(views) <= set(leaves)
    for name, camera in views.items():
        mesh = hall.meshes[leaves[name].mesh]
        corners = mesh.positions @ leaves[name].transform[:3, :3].T + leaves[name].transform[:3, 3]
        middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
        to = middle - camera.position
        assert to @ camera.forward == pytest.approx(np.linalg.norm(to), rel=1e-5)
        assert np.linalg.norm(to) < 3 * np.linalg.norm(np.ptp(corners, axis=0))


def test_candidates_share_kernels() -> None:
    """Only size and masks make another frame: views, roughness and reach are a frame's inputs."""
    found = list(candidates({"a tree": look_at(np.zeros(3), np.array([0.0, 0.0, 1.0]), 1.0)}))
    assert found[0] == FitRun() and len({str(run) for run in found}) == len(found) > 30
    assert len({(run.scale, run.masks) for run in found}) <= 5
    for run in found:
        FrameOptions(8, 8, masks=run.masks)
    assert any(run.at for run in found) and not any(run.at for run in candidates({}))


def test_inputs_of_a_run() -> None:
    hall = load(None)
    given = FrameInputs(hall.camera, hall.light, hall.environment, occlusion_radius=2.0)
    views = leaf_views(hall)
    name = next(iter(views))
    found = FitRun(at=name, zoom=3.0, cutoff=0.1, reach=4.0).inputs(given, views)
    assert found.roughness_cutoff == 0.1 and found.occlusion_radius == 8.0
    assert found.camera.position == pytest.approx(views[name].position)
    assert np.tan(found.camera.y_fov / 2) == pytest.approx(np.tan(views[name].y_fov / 2) / 3)
    assert FitRun().inputs(given, views).roughness_cutoff == given.roughness_cutoff
