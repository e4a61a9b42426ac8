"""Frames over one scene share its buffers and the device's pipelines."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu import pipelines
from engine.gpu.pipelines import PipelineCache
from engine.gpu.shader import Composer
from engine.scene.camera import look_at
from passes.frame_options import FrameOptions
from passes.frame_uniforms import frame_inputs
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame


@pytest.fixture(scope="module")
def scene(device: Any, room: Any) -> GpuScene:
    return GpuScene(device, room)


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_another_size_compiles_nothing_and_is_made_in_no_time(
    device: Any, room: Any, scene: GpuScene, gbuffer: str
) -> None:
    first = HybridFrame(device, room, FrameOptions(64, 48, gbuffer=gbuffer), scene)
    first.run()
    made, took = device.pipelines.made, []
    for size in ((24, 17), (40, 30), (17, 8), (9, 9), (50, 20)):
        start = time.perf_counter()
        other = HybridFrame(device, room, FrameOptions(*size, gbuffer=gbuffer), scene)
        took.append(1e3 * (time.perf_counter() - start))
        assert other.compile_ms == 0.0 and other.run().valid
    assert device.pipelines.made == made
    assert min(took) < 60.0  # 10 on two quiet cores; compiling takes hundreds


def test_frames_that_take_turns_do_not_disturb_each_other(
    device: Any, room: Any, scene: GpuScene
) -> None:
    sizes = [(64, 48), (24, 17)]
    alone = []
    for size in sizes:
        frame = HybridFrame(device, room, FrameOptions(*size), GpuScene(device, room))
        frame.run()
        alone.append((frame.result_hash(), frame.image()))
    frames = [HybridFrame(device, room, FrameOptions(*size), scene) for size in sizes]
    for _ in range(2):
        for frame, (result_hash, image) in zip(frames, alone, strict=True):
            frame.run()
            assert frame.result_hash() == result_hash
            np.testing.assert_array_equal(frame.image(), image)


def test_switching_options_keeps_the_number_of_live_pipelines(
    device: Any, room: Any, scene: GpuScene, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every switch of these makes other traversal kernels."""
    # A cache of its own, as other tests' frames hold pipelines, and so small that it has to drop.
    monkeypatch.setattr(pipelines, "LIVE_PIPELINES", 24)
    monkeypatch.setattr(pipelines, "LIVE_STACKS", 8)
    cache = PipelineCache(device.wgpu, Composer(), device.info.is_cpu)
    monkeypatch.setattr(device, "pipelines", cache)
    for _ in range(60):
        choice = rng.integers(0, 2, 5).tolist()
        options = FrameOptions(
            8,
            8,
            gbuffer="rays" if choice[0] else "raster",
            count=bool(choice[1]),
            sort_shadow=bool(choice[2]),
            loops="two" if choice[3] else "one",
            stack=64 if choice[4] else 32,
        )
        HybridFrame(device, room, options, scene)
    assert cache.made > cache.live
    assert cache.live_stacks <= 8
    assert cache.live <= 24


def test_another_camera_comes_with_the_inputs(device: Any, room: Any, scene: GpuScene) -> None:
    options = FrameOptions(32, 24)
    frame = HybridFrame(device, room, options, scene)
    assert frame.inputs == frame_inputs(room, options)
    frame.run()
    before = frame.image()
    camera = look_at(np.array([3.0, 2.5, 5.0]), np.array([0.0, 0.5, 0.0]), np.radians(50.0))
    frame.run(inputs=replace(frame.inputs, camera=camera))
    moved, moved_hash = frame.image(), frame.result_hash()
    assert (moved != before).mean() > 0.3
    frame.run()  # the last inputs stay
    np.testing.assert_array_equal(frame.image(), moved)

    elsewhere = replace(room, scene=replace(room.scene, camera=camera))
    fresh = HybridFrame(device, elsewhere, options)
    fresh.run()
    assert fresh.result_hash() == moved_hash
    np.testing.assert_array_equal(fresh.image(), moved)
