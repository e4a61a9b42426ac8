"""What moves in a scene decides its update passes, and what others see of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bvh.validate import validate
from engine.gpu.errors import UserError
from engine.scene.pose import timeline
from engine.scene.scene import Scene
from passes.frame_stats import FrameStats
from passes.hybrid import FrameOptions, HybridFrame
from passes.twins.read_back import read_resources

SIZE = (96, 54)
Make = Callable[..., HybridFrame]
Show = Callable[..., FrameStats]


def test_rigid_only_has_one_pass_and_keeps_masks(
    scene_of: Callable[[str], Scene], make_frame: Make, show: Show
) -> None:
    truck = scene_of("CesiumMilkTruck")
    hidden = tuple(
        replace(item, mask=0 if item.name == "Wheels#2" else item.mask) for item in truck.instances
    )
    frames = [make_frame(replace(truck, instances=x)) for x in (truck.instances, hidden)]
    for frame in frames:
        assert [p.name for p in frame.passes if p.name.startswith("update")] == ["update/tlas"]
        show(frame, "clip 0", 0.5)
        assert frame.moving is not None and frame.moving.decisions == []
        assert validate(frame.bvh()) == []
    shown, less = (f.bvh() for f in frames)
    masks = [[x.mask for x in bvh.instances] for bvh in (shown, less)]
    assert 0 in masks[1] and 0 not in masks[0]
    assert (shown.tlas_words != less.tlas_words).any()


def test_instances_are_hidden_and_shown_in_a_pose(
    scene_of: Callable[[str], Scene], make_frame: Make, show: Show
) -> None:
    frame = make_frame(scene_of("CesiumMilkTruck"))
    show(frame, "clip 0", 0.5)
    words = frame.bvh().words
    for _ in range(2):
        frame.scene.set_hidden({0})
        assert validate(frame.bvh()) == [] and (frame.bvh().words != words).sum() == 1
        frame.scene.set_hidden(())
        assert (frame.bvh().words == words).all()


def test_static_scenes_have_no_update(kit: Any, make_frame: Make, show: Show) -> None:
    frame = make_frame(kit.room())
    assert not any(p.name.startswith("update") for p in frame.passes)
    assert frame.moving is None and frame.timeline() == ()
    assert "parents" not in frame.scene.buffers
    with pytest.raises(UserError, match="nothing moves"):
        show(frame, "Run")


def test_time_line(scene_of: Callable[[str], Scene]) -> None:
    spans = timeline(scene_of("Fox"))
    assert [span.name for span in spans] == ["Survey", "Walk", "Run"]
    assert [span.duration for span in spans] == pytest.approx([3.41667, 0.70833, 1.15833], abs=1e-4)
    assert all(span.start == 0 for span in spans)


def test_twins_draw_the_pose(stage: Scene, make_frame: Make, show: Show) -> None:
    frame = make_frame(stage, gbuffer="rays")
    show(frame, "Run", 0.5)
    twins = frame.run_cpu("gbuffer")
    drawn = read_resources(frame.data, frame.inputs)
    assert (twins["bvh"] == drawn["bvh"]).all() and (drawn["bvh"] == frame.bvh().words).all()
    assert (twins["ids"] == drawn["ids"]).all(axis=-1).mean() > 0.999


def test_unknown_names(stage: Scene, make_frame: Make, show: Show) -> None:
    frame = make_frame(stage)
    with pytest.raises(UserError, match="'Survey', 'Walk', 'Run'"):
        show(frame, "Fly")
    with pytest.raises(UserError, match="refit, rebuild, policy"):
        FrameOptions(*SIZE, update="never")
