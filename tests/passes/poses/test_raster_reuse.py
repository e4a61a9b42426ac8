"""Shadow maps and probes are drawn again where what they show has changed, and nowhere else: each
frame says what it left out, and what it shows is what a frame that draws everything shows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.frame.frame import Frame
from engine.scene.camera import look_at
from engine.scene.light import Environment
from passes import view_culling
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FrameInputs
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from tests.passes.poses.kept_layers import (
    FACES,
    FALLBACK,
    LIT,
    MAPS,
    STILL,
    same,
    shown,
    whole,
)


@pytest.fixture(scope="module")
def scene(device: Any, room: Any) -> GpuScene:
    return GpuScene(device, room)


def make(scene: GpuScene, **options: Any) -> HybridFrame:
    settings = FrameOptions(48, 32, **{**FALLBACK, **options})
    return HybridFrame(scene.device, scene.prepared, settings, scene)


def changes(inputs: FrameInputs) -> dict[str, tuple[FrameInputs, set[str]]]:
    """Inputs and what has to be drawn for them after others."""
    camera = look_at(np.array([-0.4, 1.5, 5.0]), np.array([0.0, 0.5, 0.0]), 0.9)
    light = replace(inputs.light, center=inputs.light.center + [0.3, 0.0, -0.2])
    bright = replace(inputs.light, radiance=(3.0, 5.0, 4.0))
    sky = Environment((0.9, 0.1, 0.1), (0.2, 0.9, 0.2), (0.1, 0.1, 0.8))
    return {
        "nothing": (inputs, set()),
        "sample": (replace(inputs, frame_index=3, seed=4, exposure=2.0), set()),
        "camera": (replace(inputs, camera=camera), FACES | LIT),
        "sky": (replace(inputs, environment=sky), LIT),
        "radiance": (replace(inputs, light=bright), LIT),
        "light": (replace(inputs, light=light), MAPS | LIT),
    }


@pytest.mark.parametrize("change", ["nothing", "sample", "camera", "sky", "radiance", "light"])
def test_what_changes_is_drawn_again(scene: GpuScene, change: str) -> None:
    frame = make(scene)
    first = frame.run(0)
    assert first.reused == () and {*MAPS, *FACES, *LIT} < set(first.passes)
    first_inputs = frame.inputs
    inputs, redrawn = changes(first_inputs)[change]
    for _ in range(2):
        stats = frame.run(inputs.frame_index, inputs=inputs)
        assert set(stats.reused) == (MAPS | FACES | LIT) - redrawn
        if stats.timing_source == "wall-clock":
            assert all(stats.passes[name] == 0 for name in stats.reused)
        redrawn = set()
    wanted = make(scene)
    assert wanted.run(inputs.frame_index, inputs=inputs).reused == ()
    same(shown(frame), shown(wanted))
    # And back: what was drawn before the change is gone.
    frame.run(0, inputs=first_inputs)
    same(shown(frame), whole(frame, first_inputs))


def test_a_probe_in_the_middle_of_the_scene_stays(scene: GpuScene) -> None:
    frame = make(scene, probe_position="scene")
    frame.run(0)
    camera, _ = changes(frame.inputs)["camera"]
    assert set(frame.run(0, inputs=camera).reused) == MAPS | FACES | LIT
    same(shown(frame), whole(frame, camera))


def test_what_is_hidden_is_in_no_map(device: Any, room: Any) -> None:
    prepared = prepare(room.scene, BuildOptions(builder="lbvh", reinsertion=0), "object")
    frame = make(GpuScene(device, prepared))
    frame.run(0)
    before = shown(frame)
    for hidden in ({3}, set()):
        frame.scene.set_hidden(hidden)
        assert frame.run(0).reused == ()
        found = shown(frame)
        same(found, whole(frame, frame.inputs))
        assert (found["shadow_map"] != before["shadow_map"]).any() == bool(hidden)


def test_what_is_left_halfway_is_drawn_again(
    scene: GpuScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever comes next: the same view, or the one that was whole before."""
    frame = make(scene)
    first = frame.inputs
    inputs, _ = changes(first)["light"]
    run_part = Frame._run_part

    def cut(self: Frame, item: Any, begin: int, count: int, total: int) -> Any:
        times = run_part(self, item, begin, count, total)
        if item.name == "shadow_map/depth/0" and begin + count < total:
            raise InterruptedError
        return times

    for after in (inputs, first):
        frame.run(0, inputs=first)
        with monkeypatch.context() as patch, pytest.raises(InterruptedError):
            patch.setattr(Frame, "_run_part", cut)
            list(frame.steps(0, inputs=inputs, budget_ms=1e-3))
        frame.run(0, inputs=after)
        same(shown(frame), whole(frame, after))
        assert set(frame.run(0, inputs=after).reused) == MAPS | FACES | LIT
    # By steps, too, and the steps say so.
    *_, stats = frame.steps(0, budget_ms=1e-3)
    assert stats is not None and set(stats.reused) == MAPS | FACES | LIT
    same(shown(frame), whole(frame, frame.inputs))


def test_submitted_frames_say_what_they_left_out(scene: GpuScene) -> None:
    frame = make(scene)
    found = []
    for _ in range(2):
        assert frame.submit()
        stats = None
        while stats is None:
            scene.device.wait()
            stats = frame.poll()
        found.append(stats)
    assert found[0].reused == () and set(found[1].reused) == MAPS | FACES | LIT
    assert set(found[1].passes) == set(found[0].passes)
    same(shown(frame), whole(frame, frame.inputs))


@pytest.fixture(scope="module")
def posed(figure: Any) -> HybridFrame:
    """A figure that moves before walls that do not."""
    options = {**FALLBACK, "shadow_map_size": 256, "probe_position": "scene"}
    found: HybridFrame = figure.frame(figure.scene, "object", **options)
    return found


def test_only_what_moves_is_drawn_again(figure: Any, posed: HybridFrame) -> None:
    first = posed.run(0, inputs=replace(posed.inputs, clip=None, time=0.0))
    assert first.reused == ()
    for time in (0.3, 0.7):
        moment = replace(posed.inputs, clip=figure.clip, time=time)
        stats = posed.run(0, inputs=moment)
        assert STILL <= set(stats.reused) and "probe/light" not in stats.reused
        assert {"shadow_map/depth/0", "probe/ids/0"}.isdisjoint(stats.reused)
        same(shown(posed), whole(posed, moment))
        assert set(posed.run(0, inputs=moment).reused) == STILL | MAPS | FACES | LIT


def test_layers_are_what_is_drawn_at_once(
    figure: Any, posed: HybridFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a frame for which everything moves: its still layers are empty."""
    moment = replace(posed.inputs, clip=figure.clip, time=0.7)
    assert posed.run(0, inputs=moment).valid
    layered = shown(posed)
    assert posed.data.targets.read("shadow_map_still").any()

    def all_move(scene: Any) -> Any:
        return np.ones(len(scene.instances), bool)

    monkeypatch.setattr(view_culling, "moving_objects", all_move)
    other = HybridFrame(posed.device, posed.scene.prepared, posed.options, posed.scene)
    other.run(0, inputs=moment)
    assert not other.data.targets.read("shadow_map_still").any()
    same(layered, shown(other))


def test_frames_of_one_scene_in_other_poses(figure: Any, posed: HybridFrame) -> None:
    other = HybridFrame(posed.device, posed.scene.prepared, posed.options, posed.scene)
    moments = [replace(posed.inputs, clip=figure.clip, time=time) for time in (0.2, 0.9)]
    frames = list(zip((posed, other), moments, strict=True))
    for one, moment in frames:
        one.run(0, inputs=moment)
    before = [shown(one) for one, _ in frames]
    for (one, moment), found in zip(frames, before, strict=True):
        stats = one.run(0, inputs=moment)
        assert set(stats.reused) == STILL | MAPS | FACES | LIT
        same(shown(one), found)
    assert (before[0]["shadow_map"] != before[1]["shadow_map"]).any()


@pytest.mark.parametrize(
    "size,lights,wanted",
    [
        ((160, 90), 1, (1024, 128)),
        ((160, 90), 16, (512, 128)),
        ((640, 360), 1, (1024, 256)),
        ((1920, 1080), 1, (2048, 512)),
        ((7680, 4320), 1, (2048, 512)),
        ((1920, 1080), 16, (512, 512)),
    ],
)
def test_sizes_follow_the_picture(size: Any, lights: int, wanted: Any) -> None:
    options = FrameOptions(*size, reflections="screen", shadows="map").sized(lights)
    assert (options.shadow_map_size, options.probe_size) == wanted
    assert options.map_lights == lights
    fixed = FrameOptions(*size, **FALLBACK).sized(lights)
    assert (fixed.shadow_map_size, fixed.probe_size) == (128, 32)
    assert FrameOptions(*size).sized(lights) == FrameOptions(*size)
