"""A figure that moves, without rays: shadows and reflections are those of its pose, and the
structure, which such a frame leaves alone, follows when somebody asks for it."""

from typing import Any

import numpy as np
import pytest

from bvh.header import unpack_header
from bvh.validate import validate

FALLBACK = dict(reflections="screen", shadows="map", shadow_map_size=512, probe_size=64)


def radiance(frame: Any) -> Any:
    return frame.radiance()


@pytest.mark.parametrize("update", ["refit", "rebuild"])
def test_the_picture_is_that_of_a_still_scene_in_the_pose(figure: Any, update: str) -> None:
    moving = figure.frame(figure.scene, update=update, **FALLBACK)
    names = [item.name for item in moving.passes if item.name.startswith("update/")]
    assert names == ["update/skin"]
    found = radiance(figure.show(moving, 0.7))
    wanted = radiance(figure.show(figure.frame(figure.still(0.7), **FALLBACK), None))
    rest = radiance(figure.show(moving, None))
    scale = wanted.mean()
    assert np.abs(found - wanted).mean() < 0.01 * scale
    assert np.abs(found - rest).mean() > 0.05 * scale
    by_rays = radiance(figure.show(figure.frame(figure.scene), 0.7))
    near = np.abs(radiance(figure.show(moving, 0.7)) - by_rays).mean()
    assert near < 0.3 * np.abs(rest - by_rays).mean()


@pytest.mark.parametrize("update", ["refit", "rebuild", "policy"])
def test_the_structure_follows_when_asked_for(figure: Any, update: str) -> None:
    frame = figure.show(figure.frame(figure.scene, update=update, **FALLBACK), 0.9)
    bvh = frame.bvh()
    assert validate(bvh) == [] and frame.moving.messages() == []
    # Of the pose, not of what was prepared: its TLAS is the one that a frame with rays has.
    traced = figure.show(figure.frame(figure.scene), 0.9).bvh()
    found, wanted = (unpack_header(item.words).bounds for item in (bvh, traced))
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    prepared = unpack_header(frame.scene.prepared.bvh.words).bounds
    assert np.abs(prepared - wanted).max() > 0.01
