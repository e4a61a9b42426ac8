"""Decisions and the numbers that caused them."""

import math
from typing import Any

import pytest

from bvh.rebuild_policy import LOG_LENGTH, PolicyOptions, RebuildPolicy, RebuildTracker
from engine.gpu.errors import UserError


def _tracker(motion: str = "deforming", **options: Any) -> RebuildTracker:
    tracker = RebuildTracker("figure", motion, PolicyOptions(**options))
    tracker.built(10, sah=8.0, visits=20.0)
    return tracker


def test_the_first_decision_is_a_build() -> None:
    for motion in ("static", "rigid", "deforming"):
        decision = RebuildTracker("thing", motion).decide(0, changed=False)
        assert (decision.action, decision.reason) == ("rebuild", "never built")
        assert math.isnan(decision.value)


@pytest.mark.parametrize("motion", ["static", "rigid"])
def test_what_does_not_deform_is_kept(motion: str) -> None:
    tracker = _tracker(motion)
    assert tracker.decide(50, changed=False).action == "keep"
    surprise = tracker.decide(51, changed=True)
    assert surprise.action == "rebuild" and f"declared {motion}" in surprise.reason


def test_sah_decides() -> None:
    tracker = _tracker(sah_growth=1.5)
    assert tracker.decide(20, changed=False).action == "keep"
    tracker.measured(sah=12.0)  # exactly the limit is not past it
    kept = tracker.decide(20, changed=True)
    assert (kept.action, kept.value, kept.limit) == ("refit", 1.5, 1.5)
    tracker.measured(sah=12.5)
    decision = tracker.decide(21, changed=True)
    assert decision.action == "rebuild"
    assert str(decision) == (
        "frame 21: figure (deforming): rebuild, SAH over the build's 1.562, limit 1.5"
    )
    tracker.built(21, sah=9.0)
    assert tracker.decide(40, changed=True).value == 1.0


def test_node_visits_decide() -> None:
    tracker = _tracker(visits_growth=1.2)
    tracker.measured(sah=8.1, visits=24.1)
    decision = tracker.decide(20, changed=True)
    assert decision.action == "rebuild" and decision.reason.startswith("node visits")
    assert decision.value == pytest.approx(24.1 / 20) and decision.limit == 1.2


def test_late_numbers_stand_in_for_those_of_the_build() -> None:
    tracker = RebuildTracker("figure", "deforming")
    tracker.built(0)
    first = tracker.decide(9, changed=True)
    assert first.action == "refit" and math.isnan(first.value)
    tracker.measured(visits=10.0)
    assert tracker.decide(10, changed=True).value == 1.0
    tracker.measured(visits=13.0)
    assert tracker.decide(11, changed=True).action == "rebuild"


def test_frames_between_builds() -> None:
    tracker = _tracker(least_frames=3, most_frames=30)
    tracker.measured(sah=80.0)
    young = tracker.decide(12, changed=True)
    assert (young.action, young.value, young.limit) == ("refit", 2, 3)
    assert tracker.decide(13, changed=True).reason.startswith("SAH")
    tracker.measured(sah=8.0)
    assert tracker.decide(39, changed=True).action == "refit"
    old = tracker.decide(40, changed=True)
    assert (old.action, old.value, old.limit) == ("rebuild", 30, 30)
    assert tracker.decide(400, changed=False).action == "keep"


def test_a_tree_that_cost_nothing() -> None:
    tracker = RebuildTracker("point", "deforming")
    tracker.built(0, sah=0.0)
    assert tracker.decide(9, changed=True).value == 1.0
    tracker.measured(sah=2.0)
    assert tracker.decide(9, changed=True).action == "rebuild"


def test_policy_logs_what_it_does() -> None:
    policy = RebuildPolicy(PolicyOptions(least_frames=0))
    policy.add("room", "static")
    policy.add("wheel", "rigid")
    figure = policy.add("figure", "deforming")
    assert [d.action for d in policy.decide(0, [])] == ["rebuild"] * 3
    for tracker in policy.trackers.values():
        tracker.built(0, sah=5.0)
    for frame, sah, action in ((1, 5.5, "refit"), (2, 6.6, "rebuild")):
        figure.measured(sah=sah)
        decisions = policy.decide(frame, ["figure"])
        assert [d.action for d in decisions] == ["keep", "keep", action]
    assert [(d.frame, d.name, d.action) for d in policy.log[3:]] == [
        (1, "figure", "refit"),
        (2, "figure", "rebuild"),
    ]
    assert "SAH over the build's 1.32, limit 1.3" in str(policy.log[-1])
    assert policy.decided == {"room": 1, "wheel": 1, "figure": 3}
    for frame in range(3, 3 + LOG_LENGTH):
        policy.decide(frame, ["figure"])
    assert len(policy.log) == LOG_LENGTH and policy.log[-1].frame == 2 + LOG_LENGTH
    assert policy.decided["figure"] == 3 + LOG_LENGTH
    with pytest.raises(ValueError, match="ghost"):
        policy.decide(3, ["ghost"])
    with pytest.raises(ValueError, match="already"):
        policy.add("room", "static")


def test_bad_options() -> None:
    with pytest.raises(UserError, match="sah_growth"):
        PolicyOptions(sah_growth=0.9)
    with pytest.raises(UserError, match="visits_growth"):
        PolicyOptions(visits_growth=math.nan)
    with pytest.raises(UserError, match="frames"):
        PolicyOptions(most_frames=0)
    with pytest.raises(UserError, match="soft"):
        RebuildTracker("x", "soft")
