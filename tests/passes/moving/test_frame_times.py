"""A frame at a time of its clip, whatever was drawn before, and of whichever frame of the scene."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.gpu.errors import UserError
from engine.scene.scene import Scene
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import prepare

FAST = BuildOptions(builder="lbvh", reinsertion=0)
# One triangle a block in world space: the same arithmetic whatever the tree.
EXACT = BuildOptions(builder="lbvh", reinsertion=0, nodes="fp32", leaf=1)
Make = Callable[..., HybridFrame]
Show = Callable[..., FrameStats]


def test_a_clip_repeats_or_stays(
    scene_of: Callable[[str], Scene], make_frame: Make, show: Show
) -> None:
    frame = make_frame(scene_of("Fox"))
    duration = frame.timeline()[2].duration

    def at(time: float, loop: bool = True) -> str:
        show(frame, "Run", time, loop=loop)
        return frame.result_hash()

    start, middle, end = at(0.0), at(0.25), at(duration)
    assert start != middle
    assert at(-7.0) == at(-7.0, loop=False) == start
    assert at(duration + 0.25, loop=False) == at(1e300, loop=False) == end
    again = (duration + 0.25) % duration
    assert again == pytest.approx(0.25) and at(duration + 0.25) == at(again) != end
    at(1e300)
    for bad in (np.inf, np.nan):
        with pytest.raises(UserError, match="finite"):
            at(bad)
    assert at(0.0) == start


def test_equal_times_are_equal_frames(stage: Scene, make_frame: Make, show: Show) -> None:
    frame = make_frame(stage)
    seen = []
    for _ in range(3):
        for time in (0.2, 0.7):
            show(frame, "Run", time)
            seen.append((time, frame.result_hash(), frame.image().tobytes()))
    assert len(set(seen)) == 2


def test_without_a_clip_nothing_is_touched(
    device: Any, stage: Scene, make_frame: Make, show: Show
) -> None:
    prepared = prepare(stage, FAST)
    frame, untouched = make_frame(prepared), make_frame(prepared)
    show(untouched, None, 3.0)
    for update in ("refit", "rebuild"):
        frame = make_frame(prepared, update=update)
        show(frame, "Run", 0.4)
        assert frame.result_hash() != untouched.result_hash()
        show(frame, None)
        assert frame.result_hash() == untouched.result_hash()
        assert frame.bvh() is prepared.bvh
        for name in ("bvh", "tables", "geometry", "parents"):
            held = np.ascontiguousarray(frame.scene.arrays[name]).view(np.uint32).reshape(-1)
            assert (device.read(frame.scene.buffers[name], count=len(held)) == held).all()


def test_frames_of_one_scene_at_different_times(
    device: Any, stage: Scene, make_frame: Make, show: Show
) -> None:
    """Each poses the scene as it begins; a further sample knows that another did."""
    prepared = prepare(stage, FAST)
    on_gpu = GpuScene(device, prepared)
    a, b = (make_frame(prepared, on_gpu) for _ in range(2))
    alone = []
    for time in (0.2, 0.7):
        show(a, "Run", time)
        a.run(1, 2)
        alone.append((a.result_hash(), a.image().tobytes()))
    show(a, "Run", 0.2)
    words = a.bvh().words
    show(b, "Run", 0.7)
    assert (b.bvh().words != words).any() and (a.bvh().words == words).all()
    a.run(1, 2)
    assert (a.result_hash(), a.image().tobytes()) == alone[0]
    b.run(1, 2)
    assert (b.result_hash(), b.image().tobytes()) == alone[1]


def test_frames_in_parts_between_each_other(
    device: Any, stage: Scene, make_frame: Make, show: Show
) -> None:
    prepared = prepare(stage, EXACT)
    on_gpu = GpuScene(device, prepared)
    updates = ("refit", "rebuild", "refit")
    frames = [make_frame(prepared, on_gpu, update=update) for update in updates]
    poses = [("Run", 0.2), ("Run", 0.7), (None, 0.0)]
    alone = []
    for frame, (clip, time) in zip(frames, poses, strict=True):
        show(frame, clip, time)
        alone.append((frame.result_hash(), frame.image().tobytes()))
    steps = {i: f.steps(inputs=f.inputs, budget_ms=1.0) for i, f in enumerate(frames)}
    between = {}
    taken = 0
    while steps:
        for i in list(steps):
            taken += 1
            stats = next(steps[i])
            if stats is not None:
                assert stats.valid
                between[i] = (frames[i].result_hash(), frames[i].image().tobytes())
                del steps[i]
    assert taken > 12 and [between[i] for i in range(3)] == alone


def test_a_frame_that_goes_on_holds_its_pose(stage: Scene, make_frame: Make, show: Show) -> None:
    prepared = prepare(stage, FAST)
    frame = make_frame(prepared)
    show(frame, "Run", 0.2)
    moving, before = frame.moving, frame.bvh().words
    assert moving is not None
    show(frame, "Walk", 0.5)
    assert (frame.bvh().words != before).any()
    moving.hold("Run", 0.2, loop=True)
    assert (frame.scene.bvh().words == before).all()
    moving.hold(None, 0.0, loop=True)
    assert frame.scene.bvh() is prepared.bvh
    assert frame.bvh() is not prepared.bvh
