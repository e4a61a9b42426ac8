"""What the update passes of a moving scene did to each object that deforms, as records.

Times are the passes': `update/refit` and `update/build` hold what happened to all objects, so that
an object's own time is known where it was the only one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bvh.rebuild_policy import Decision
from passes.moving import MovingScene

# Action -> the pass that does it.
UPDATE_PASSES = {"refit": "update/refit", "rebuild": "update/build"}


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    """One deforming BLAS. `action` of the last frame that was posed, `value` the number that
    decided it and `limit` what that was compared with (NaN: no number decided). `sah` and `visits`
    (node visits each time that a ray entered, from counted frames) of the tree as it is, and as
    they were first known after its build; NaN where nobody measured. `decided` is how often the
    policy decided so far, those that keep left out, `decisions` the last of these as sentences."""

    name: str
    motion: str
    action: str
    reason: str
    value: float
    limit: float
    builds: int
    refits_since_build: int
    sah_built: float
    sah: float
    visits_built: float
    visits: float
    decided: int
    decisions: tuple[str, ...]


def update_records(moving: MovingScene | None, *, wait: bool = False) -> tuple[UpdateRecord, ...]:
    """In the order of the scene's BLASes; none before anything was posed. Only frames that decide
    by SAH measure it: with `wait` it is worked out for the last refits, which waits."""
    if moving is None:
        return ()
    exact = moving.sah() if wait else {}
    last = {decision.name: decision for decision in moving.decisions}
    return tuple(
        _record(moving, name, builds, last.get(name), exact) for name, builds in moving.builds()
    )


def _record(
    moving: MovingScene,
    name: str,
    builds: int,
    last: Decision | None,
    exact: Mapping[str, float],
) -> UpdateRecord:
    tracker = moving.policy.trackers[name]
    last = last or Decision(0, name, tracker.motion, "keep", "as it was prepared")
    return UpdateRecord(
        name=name,
        motion=tracker.motion,
        action=last.action,
        reason=last.reason,
        value=last.value,
        limit=last.limit,
        builds=builds,
        refits_since_build=moving.refits_since_build[name],
        sah_built=tracker.built_sah,
        sah=exact.get(name, tracker.sah),
        visits_built=tracker.built_visits,
        visits=tracker.visits,
        decided=moving.policy.decided[name],
        decisions=tuple(str(item) for item in moving.policy.log if item.name == name),
    )


def own_update_ms(
    records: tuple[UpdateRecord, ...], record: UpdateRecord, passes: Mapping[str, float]
) -> float:
    """What the last update of `record` took by the pass times of its frame: NaN where others shared
    the pass, 0 where nothing was done."""
    name = UPDATE_PASSES.get(record.action)
    if name is None:
        return 0.0
    alone = sum(other.action == record.action for other in records) == 1
    return passes.get(name, math.nan) if alone else math.nan
