"""What is known of each deforming object: updates since the build, and what its tree costs."""

import math
from dataclasses import replace
from typing import Any

import pytest

from bvh.build import BuildOptions
from bvh.rebuild_policy import PolicyOptions, RebuildPolicy
from engine.scene.load import load_scene
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare

FAST = BuildOptions(builder="lbvh", reinsertion=0)


@pytest.fixture(scope="module")
def fox(shared_scenes: Any) -> PreparedScene:
    return prepare(load_scene(shared_scenes / "Fox.glb"), FAST)


def run(frame: HybridFrame, time: float) -> Any:
    stats = frame.run(0, inputs=replace(frame.inputs, clip="Run", time=time))
    assert stats.valid
    return stats


def test_nothing_is_known_of_what_stands_still(draw: Any, room: Any) -> None:
    assert draw(room, 16, 12).frame.updates() == ()


def test_refits_are_counted_and_their_trees_measured(device: Any, fox: PreparedScene) -> None:
    frame = HybridFrame(device, fox, FrameOptions(32, 24, count=True))
    assert frame.updates() == ()  # nothing was posed yet
    for time in (0.0, 0.2, 0.4):
        stats = run(frame, time)
    (record,) = frame.updates()
    assert (record.action, record.reason) == ("refit", "every frame is told to refit")
    assert record.refits_since_build == 3 and record.builds == 0 and record.decisions == ()
    assert math.isnan(record.value) and math.isnan(record.limit)
    assert record.sah_built == fox.bvh.blas_stats[0].sah
    assert record.sah == pytest.approx(frame.moving.sah()[record.name])
    assert record.sah != record.sah_built
    # Visits are the last counted frame's, nodes each time that a ray came in.
    rows = [row for (name, _), row in stats.objects.items() if name == fox.object_names[0]]
    entered = sum(row["instance_hits"] for row in rows)
    assert record.visits == sum(row["nodes"] for row in rows) / entered > 1
    assert record.visits_built > 1
    (unmeasured,) = frame.updates(wait=False)
    assert unmeasured.sah == record.sah_built


def test_frames_that_do_not_count_say_nothing_of_visits(device: Any, fox: PreparedScene) -> None:
    frame = HybridFrame(device, fox, FrameOptions(32, 24))
    run(frame, 0.1)
    (record,) = frame.updates()
    assert math.isnan(record.visits) and math.isnan(record.visits_built)


def test_decisions_tell_the_number_that_decided(device: Any, fox: PreparedScene) -> None:
    frame = HybridFrame(device, fox, FrameOptions(32, 24, count=True, update="policy"))
    moving = frame.moving
    assert moving is not None
    moving.policy = RebuildPolicy(PolicyOptions(least_frames=0))
    run(frame, 0.0)
    (tracker,) = moving.policy.trackers.values()
    tracker.built_visits = tracker.visits / 2  # as if it had cost half when it was built
    tracker.built_sah = math.nan
    run(frame, 0.1)
    (record,) = frame.updates()
    assert (record.action, record.reason) == ("rebuild", "node visits over the build's")
    assert record.value == pytest.approx(2.0, rel=0.05) and record.limit == 1.2
    assert record.builds == 1 and record.refits_since_build == 0
    assert (
        record.decided == len(record.decisions) == 2
        and "rebuild, node visits" in record.decisions[-1]
    )
    # What was counted after the build is the new tree's.
    assert record.visits == record.visits_built > 1


def test_late_numbers_after_a_build_are_the_tree_befores(device: Any, fox: PreparedScene) -> None:
    frame = HybridFrame(device, fox, FrameOptions(32, 24, update="policy"))
    run(frame, 0.0)
    moving = frame.moving
    assert moving is not None
    (tracker,) = moving.policy.trackers.values()
    counted = {(fox.object_names[0], "shadow"): {"nodes": 90, "instance_hits": 9}}
    tracker.built(1)
    moving.note_visits(counted, late=True)
    assert math.isnan(tracker.visits)
    moving.note_visits(counted, late=False)
    assert tracker.visits == 10.0
