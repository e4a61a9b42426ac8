"""Picks in a scene that moves, and with instances hidden."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene
from treeline.view.pick import Pick, pick
from treeline.view.pixel_rays import steps
from treeline.view.step_check import check_steps
from treeline.view.structure_tree import StructureTree


@pytest.fixture
def frame(device: Any, hall: PreparedScene) -> HybridFrame:
    return HybridFrame(device, hall, FrameOptions(64, 36, seed=3, gbuffer="rays"))


def check(frame: HybridFrame, picked: Pick) -> None:
    """Every ray by the kernel and the oracle, and the path by the bytes of that moment."""
    for ray in picked.rays:
        found = check_steps(frame.device, ray)
        assert found.verified, found.verdict
        ends = steps(ray)[-1]
        assert np.isfinite(ends.t) == ray.hit
    if picked.surface is None:
        return
    assert picked.note == ""
    rows = StructureTree(picked.traced.bvh).triangles(picked.path[-1])
    assert rows.primitive[picked.path[-1].triangle] == picked.primitive


def moved_pixel(frame: HybridFrame) -> tuple[int, int]:
    """One that shows what deforms."""
    scene = frame.scene.prepared.scene
    deforming = [i for i, item in enumerate(scene.instances) if item.lifetime == "deforming"]
    y, x = np.argwhere(np.isin(frame.aov("object"), deforming))[0].tolist()
    return x, y


def test_a_moment_of_a_clip(frame: HybridFrame) -> None:
    clip = frame.timeline()[0].name
    inputs = replace(frame.inputs, clip=clip, time=0.4)
    frame.run(0, 1, inputs)
    x, y = moved_pixel(frame)
    picked = pick(frame, x, y)
    rest = frame.scene.prepared.bvh
    assert not np.array_equal(picked.traced.bvh.words[: len(rest.words)], rest.words)
    check(frame, picked)
    # The scene moves on; what was picked stays what it was.
    frame.run(0, 1, replace(inputs, time=1.1))
    check(frame, picked)
    other = pick(frame, x, y)
    assert other.surface is None or not np.array_equal(
        other.traced.bvh.words, picked.traced.bvh.words
    )
    check(frame, other)


def test_a_picture_of_another_moment_is_refused(frame: HybridFrame, device: Any) -> None:
    clip = frame.timeline()[0].name
    frame.run(0, 1, replace(frame.inputs, clip=clip, time=0.4))
    second = HybridFrame(device, frame.scene.prepared, FrameOptions(8, 8), frame.scene)
    second.run(0, 1, replace(frame.inputs, clip=clip, time=0.9))
    with pytest.raises(UserError, match="moved on since this picture"):
        pick(frame, 3, 3)
    assert pick(second, 3, 3).pixel == (3, 3)


def test_hidden_instances_are_not_picked(frame: HybridFrame) -> None:
    frame.run()
    x, y = 20, 20
    before = pick(frame, x, y)
    frame.scene.set_hidden({before.instance})
    frame.run()
    after = pick(frame, x, y)
    frame.scene.set_hidden(())
    assert after.instance != before.instance
    check(frame, after)
    check(frame, before)
