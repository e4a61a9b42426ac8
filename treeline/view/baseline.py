"""A pinned baseline, and what has changed since: per ray type, per pass and for the structure.

Counts are exact, so any difference is one. Times are medians over frames of one view, and a
difference counts only where the intervals that most frames lie in do not overlap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from passes.frame_stats import FrameStats
from passes.option_list import ViewSettings, changed
from treeline.cost_model import is_traversal_of, mixes_types
from treeline.view.active import Active
from treeline.view.view_point import ViewPoint

SPREAD = (10, 90)  # percentiles of the interval that most frames lie in
FEW = 3  # frames below which there is no interval
# What of a ray type is compared, by its field and by what the text calls it.
COUNTS = {
    "rays": "rays",
    "nodes": "nodes",
    "triangle_tests": "triangle tests",
    "any_hits": "any-hit calls",
}


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a time in ms: its median over `count` frames, and the interval that most of them lie
    in."""

    count: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Baseline:
    """What was shown when it was pinned. `timed` are frames of one view, `counted` is of frame 0;
    without any the settings alone are kept. `build_ms` and `bytes` are the structure's."""

    label: str
    settings: ViewSettings
    point: ViewPoint
    size: tuple[int, int]
    timed: tuple[FrameStats, ...]
    counted: FrameStats | None
    build_ms: float
    bytes: int

    @cached_property
    def spreads(self) -> Mapping[str, Spread]:
        """`time_spreads` of the timed frames: a pinned baseline's are worked out once."""
        return time_spreads(self.timed)


@dataclass(frozen=True, slots=True)
class Change:
    """`noise` says whether the difference could be chance; None where too few frames tell."""

    what: str
    before: float
    after: float
    noise: bool | None = False

    @property
    def share(self) -> float:
        """The difference as a part of what was before; infinite where that was nothing."""
        if self.before == self.after:
            return 0.0
        return (self.after - self.before) / self.before if self.before else float("inf")

    @property
    def text(self) -> str:
        if self.before == self.after:
            return f"same {self.what}"
        share = f"{100 * self.share:+.0f}%" if np.isfinite(self.share) else "new"
        doubt = {True: " (within noise)", None: " (few frames)", False: ""}[self.noise]
        return f"{share} {self.what}{doubt}"


@dataclass(frozen=True, slots=True)
class Effect:
    """All changes of one ray type, one pass, the frame or the build."""

    subject: str
    changes: tuple[Change, ...]

    @property
    def text(self) -> str:
        return f"{self.subject}: {', '.join(change.text for change in self.changes)}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Either a `problem`, why the two cannot be compared, or effects."""

    problem: str
    effects: tuple[Effect, ...] = ()


def take_baseline(
    label: str,
    settings: ViewSettings,
    point: ViewPoint,
    size: tuple[int, int],
    active: Active | None,
) -> Baseline:
    """What has been measured with these settings; `active` is None where nothing has."""
    if active is None:
        return Baseline(label, settings, point, size, (), None, 0.0, 0)
    bvh = active.structure.bvh
    return Baseline(
        label,
        settings,
        point,
        size,
        tuple(active.drawing.recent),
        active.drawing.counted,
        sum(stats.build_ms for stats in bvh.blas_stats),
        bvh.words.nbytes,
    )


def compare(before: Baseline, now: Baseline) -> Comparison:
    """What differs between two that show the same view at the same size."""
    if before.size != now.size:
        sizes = [f"{width}x{height}" for width, height in (before.size, now.size)]
        return Comparison(f"{before.label} was measured at {sizes[0]}, this is {sizes[1]}")
    if not before.point.same_time_as(now.point):
        return Comparison(f"{before.label} was measured at another time")
    if not before.point.same_as(now.point):
        return Comparison(f"{before.label} was measured from another camera")
    for item in (before, now):
        if not item.timed:
            return Comparison(f"{item.label} has not been measured")
    effects = [_frame_effect(before, now)]
    for ray_type in before.timed[-1].rays:
        if ray_type in now.timed[-1].rays:
            effects.append(_ray_effect(ray_type, before, now))
    effects += _pass_effects(before, now)
    if before.settings.build != now.settings.build or before.settings.group != now.settings.group:
        changes = (
            Change("build ms", before.build_ms, now.build_ms, None),
            Change("bytes", before.bytes, now.bytes),
        )
        effects.append(Effect("structure", changes))
    return Comparison("", tuple(effects))


def difference(before: Baseline, settings: ViewSettings) -> str:
    """The options in which settings differ from the baseline's: "leaf 2 -> 1"."""
    return ", ".join(
        f"{option.label} {option.text(before.settings)} -> {option.text(settings)}"
        for option in changed(before.settings, settings)
    )


def time_spreads(frames: Sequence[FrameStats]) -> dict[str, Spread]:
    """Of the frame, of each ray type's traversal and of each pass of the last frame, where some
    frame has a time: "frame", "trace TYPE", "pass NAME"."""
    if not frames:
        return {}
    names = tuple(frames[-1].passes)
    traced = {} if mixes_types(names) else dict.fromkeys(frames[-1].rays, ())
    groups = {t: [i for i, n in enumerate(names) if is_traversal_of(t, n)] for t in traced}
    passes = np.array(
        [[stats.passes.get(name, np.nan) for name in names] for stats in frames], np.float64
    ).reshape(len(frames), len(names))
    columns = {
        "frame": np.array([stats.frame_total_ms for stats in frames], np.float64),
        **{f"trace {ray_type}": passes[:, group].sum(axis=1) for ray_type, group in groups.items()},
        **{f"pass {name}": passes[:, index] for index, name in enumerate(names)},
    }
    times = np.stack(list(columns.values()), axis=1)
    known = np.isfinite(times)
    if known.all():
        found = np.percentile(times, (SPREAD[0], 50, SPREAD[1]), axis=0).T.tolist()
        return {name: Spread(len(frames), *row) for name, row in zip(columns, found, strict=True)}
    spreads = {}
    for name, column in columns.items():
        finite = column[np.isfinite(column)]
        if len(finite):
            low, median, high = np.percentile(finite, (SPREAD[0], 50, SPREAD[1])).tolist()
            spreads[name] = Spread(len(finite), low, median, high)
    return spreads


def _time_change(what: str, name: str, before: Baseline, now: Baseline) -> Change:
    old, new = before.spreads.get(name), now.spreads.get(name)
    if old is None or new is None:
        return Change(what, 0.0, 0.0, None)
    noise = None
    if min(old.count, new.count) >= FEW:
        noise = old.low <= new.high and new.low <= old.high
    return Change(what, old.median, new.median, noise)


def _frame_effect(before: Baseline, now: Baseline) -> Effect:
    return Effect("frame", (_time_change("ms", "frame", before, now),))


def _ray_effect(ray_type: str, before: Baseline, now: Baseline) -> Effect:
    """Counts where both were counted, else the rays alone; and the time of the traversal."""
    changes = []
    old, new = (item.counted or item.timed[-1] for item in (before, now))
    for field, what in COUNTS.items():
        values = [getattr(stats.rays[ray_type], field) for stats in (old, new)]
        if None not in values and (values[0] != values[1] or field == "nodes"):
            changes.append(Change(what, *values))
    time = _time_change("ms", f"trace {ray_type}", before, now)
    return Effect(ray_type, (*changes, time))


def _pass_effects(before: Baseline, now: Baseline) -> list[Effect]:
    """Passes that both frames have; those of only one have nothing to be compared with."""
    shared = [name for name in now.timed[-1].passes if name in before.timed[-1].passes]
    return [Effect(name, (_time_change("ms", f"pass {name}", before, now),)) for name in shared]
