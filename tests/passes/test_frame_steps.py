"""The hybrid frame in steps: the same frame as in one go, whatever the parts' size."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.scene.camera import look_at
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame

PLANES = ("object", "primitive", "depth", "normal")


@pytest.fixture(scope="module")
def scene(device: Any, room: Any) -> GpuScene:
    return GpuScene(device, room)


def in_steps(frame: HybridFrame, budget_ms: float, **how: Any) -> tuple[FrameStats, int]:
    """The statistics, and how many steps it took."""
    results = list(frame.steps(budget_ms=budget_ms, **how))
    stats = results.pop()
    assert stats is not None and results == [None] * len(results)
    return stats, len(results) + 1


def whole_counts(stats: FrameStats) -> Any:
    return (stats.rays, stats.objects, stats.dropped, stats.valid, stats.failures, stats.counted)


# 0: every row of tiles, group of 64 rays and triangle of the raster pass by itself.
@pytest.mark.parametrize("budget_ms", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("count", [False, True])
@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_a_frame_in_steps_is_the_same_frame(
    device: Any, room: Any, scene: GpuScene, gbuffer: str, count: bool, budget_ms: float
) -> None:
    options = FrameOptions(61, 43, gbuffer=gbuffer, count=count)
    frames = [HybridFrame(device, room, options, scene) for _ in range(2)]
    for sample in range(2):
        expected = frames[0].run(sample, sample + 1)
        stats, steps = in_steps(frames[1], budget_ms, frame_index=sample, sample_count=sample + 1)
        assert whole_counts(stats) == whole_counts(expected) and stats.valid
        assert frames[0].result_hash() == frames[1].result_hash()
    np.testing.assert_array_equal(frames[0].image(), frames[1].image())
    planes = PLANES + (("nodes/reflection", "stack_max/shadow") if count else ())
    for name in planes:
        np.testing.assert_array_equal(frames[0].aov(name), frames[1].aov(name), err_msg=name)
    assert list(stats.passes) == list(expected.passes)
    assert all(ms > 0 for ms in stats.passes.values())
    assert stats.frame_total_ms == pytest.approx(sum(stats.passes.values()))
    if budget_ms == 0.0:
        groups = sum(-(-ray.rays // 64) for ray in stats.rays.values())
        rows = -(-43 // 8) * (4 + (gbuffer == "rays"))
        triangles = sum(len(room.scene.meshes[i.mesh].triangles) for i in room.scene.instances)
        shaded = -(-stats.rays["reflection"].rays // 64)
        drawn = triangles if gbuffer == "raster" else 0
        assert steps == rows + groups + shaded + drawn + 2


def test_a_frame_that_was_left_leaves_nothing_behind(
    device: Any, room: Any, scene: GpuScene
) -> None:
    options = FrameOptions(61, 43)
    frame, fresh = (HybridFrame(device, room, options, scene) for _ in range(2))
    frame.run(0)
    picture = frame.image()
    camera = look_at(np.array([3.0, 2.5, 5.0]), np.array([0.0, 0.5, 0.0]), np.radians(50.0))
    moved = replace(frame.inputs, camera=camera)
    for left_after in (0, 1, 7, 60, 400):
        steps = frame.steps(inputs=moved, budget_ms=0.0)
        for _ in range(left_after):
            next(steps)
        np.testing.assert_array_equal(frame.image(), picture)  # composed by the last step only
        del steps
    expected = fresh.run(0, inputs=moved)
    stats = frame.run(0)
    assert frame.result_hash() == fresh.result_hash() and stats.rays == expected.rays
    np.testing.assert_array_equal(frame.image(), fresh.image())


def test_steps_follow_the_budget(device: Any, room: Any, scene: GpuScene) -> None:
    frame = HybridFrame(device, room, FrameOptions(200, 120), scene)
    in_steps(frame, 1e6)
    few, many = (in_steps(frame, budget_ms)[1] for budget_ms in (1e6, 1.0))
    assert few == 1 and many > 5


@pytest.mark.parametrize("fraction", [0.02, 0.3])
def test_full_queues_are_flagged_and_grow(
    device: Any, room: Any, scene: GpuScene, fraction: float
) -> None:
    frame = HybridFrame(device, room, FrameOptions(61, 43, queue_fraction=fraction), scene)
    roomy = HybridFrame(device, room, FrameOptions(61, 43), scene)
    expected = roomy.run(0)
    stats, _ = in_steps(frame, 1.0)
    assert not stats.valid and stats.dropped > 0
    while stats.dropped:
        stats, _ = in_steps(frame, 1.0)
    assert stats.valid and stats.rays == expected.rays
    assert frame.result_hash() == roomy.result_hash()
