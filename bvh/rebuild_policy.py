"""When a BLAS is kept, refitted or built anew, and why.

An object says how it moves: a static one never changes, a rigid one moves with its instance alone,
a deforming one changes its vertices. A refit keeps the topology, so a deforming object's tree gets
worse the further it bends from the pose that it was built for. The tracker remembers what the tree
cost when it was built (SAH, and node visits a ray as counted runs report them) and builds anew when
either has grown past its threshold. Every decision is a record with the number that caused it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.gpu.errors import UserError

LOG_LENGTH = 1024  # decisions that are kept: every moving object makes one a frame
MOTIONS = ("static", "rigid", "deforming")


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """`sah_growth` and `visits_growth` are ratios to the values at the last build, from 1 up;
    infinity never builds for that reason. `least_frames` after a build no ratio is looked at (one
    bad frame cannot make every frame a build); `most_frames` after it a deforming object that has
    changed is built anew whatever the ratios say, None for never."""

    sah_growth: float = 1.3
    visits_growth: float = 1.2
    least_frames: int = 4
    most_frames: int | None = None

    def __post_init__(self) -> None:
        for name in ("sah_growth", "visits_growth"):
            if not getattr(self, name) >= 1.0:
                raise UserError(f"{name} is a ratio from 1 up, not {getattr(self, name)}")
        if self.least_frames < 0 or (self.most_frames is not None and self.most_frames < 1):
            raise UserError(
                f"a rebuild after {self.least_frames} to {self.most_frames} frames makes no sense"
            )


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to one object in one frame. `value` is the number that decided, `limit` what
    it was compared with; both are NaN where the reason is no number."""

    frame: int
    name: str
    motion: str
    action: str
    reason: str
    value: float = math.nan
    limit: float = math.nan

    def __str__(self) -> str:
        number = "" if math.isnan(self.value) else f" {self.value:.4g}"
        limit = "" if math.isnan(self.limit) else f", limit {self.limit:.4g}"
        return (
            f"frame {self.frame}: {self.name} ({self.motion}): {self.action}, "
            f"{self.reason}{number}{limit}"
        )


@dataclass(slots=True)
class RebuildTracker:
    """One object. Call `built` after a build and `measured` whenever a number is known (frames
    late is fine: GPU numbers are read back without waiting); then `decide` once a frame."""

    name: str
    motion: str
    options: PolicyOptions = field(default_factory=PolicyOptions)
    built_frame: int | None = None
    built_sah: float = math.nan
    built_visits: float = math.nan
    sah: float = math.nan
    visits: float = math.nan

    def __post_init__(self) -> None:
        if self.motion not in MOTIONS:
            raise UserError(f"{self.name}: motion '{self.motion}', not one of {', '.join(MOTIONS)}")

    def built(self, frame: int, sah: float = math.nan, visits: float = math.nan) -> None:
        """A build in `frame`; the first later measurement stands in for a number not known yet."""
        self.built_frame = frame
        self.built_sah = self.sah = sah
        self.built_visits = self.visits = visits

    def measured(self, sah: float = math.nan, visits: float = math.nan) -> None:
        """Numbers of the tree as it is now; NaN where there is none."""
        if not math.isnan(sah):
            self.sah = sah
            if math.isnan(self.built_sah):
                self.built_sah = sah
        if not math.isnan(visits):
            self.visits = visits
            if math.isnan(self.built_visits):
                self.built_visits = visits

    def decide(self, frame: int, changed: bool) -> Decision:
        """For `frame`; `changed` says whether vertices differ from the last frame's."""
        if self.built_frame is None:
            return self._say(frame, "rebuild", "never built")
        if not changed:
            return self._say(frame, "keep", "no vertex moved")
        if self.motion != "deforming":
            return self._say(frame, "rebuild", f"declared {self.motion}, but its vertices moved")
        age = frame - self.built_frame
        options = self.options
        if options.most_frames is not None and age >= options.most_frames:
            return self._say(frame, "rebuild", "frames since the build", age, options.most_frames)
        sah = _growth(self.sah, self.built_sah)
        visits = _growth(self.visits, self.built_visits)
        if age < options.least_frames:
            return self._say(frame, "refit", "frames since the build", age, options.least_frames)
        if sah > options.sah_growth:
            return self._say(frame, "rebuild", "SAH over the build's", sah, options.sah_growth)
        if visits > options.visits_growth:
            limit = options.visits_growth
            return self._say(frame, "rebuild", "node visits over the build's", visits, limit)
        if math.isnan(sah) and not math.isnan(visits):
            limit = options.visits_growth
            return self._say(frame, "refit", "node visits over the build's", visits, limit)
        return self._say(frame, "refit", "SAH over the build's", sah, options.sah_growth)

    def _say(
        self,
        frame: int,
        action: str,
        reason: str,
        value: float = math.nan,
        limit: float = math.nan,
    ) -> Decision:
        return Decision(frame, self.name, self.motion, action, reason, value, limit)


class RebuildPolicy:
    """The trackers of a scene and the log of what they decided: the last LOG_LENGTH, and in
    `decided` how many there were of each object."""

    def __init__(self, options: PolicyOptions | None = None) -> None:
        self.options = options or PolicyOptions()
        self.trackers: dict[str, RebuildTracker] = {}
        self.log: list[Decision] = []
        self.decided: dict[str, int] = {}

    def add(self, name: str, motion: str) -> RebuildTracker:
        """A new object; ValueError for a name that is taken."""
        if name in self.trackers:
            raise ValueError(f"object '{name}' is tracked already")
        self.trackers[name] = RebuildTracker(name, motion, self.options)
        self.decided[name] = 0
        return self.trackers[name]

    def decide(self, frame: int, changed: Iterable[str]) -> list[Decision]:
        """One decision an object, in the order of `add`; `changed` are the names of those whose
        vertices moved. All but "keep" go to the log."""
        moved = set(changed)
        unknown = moved - set(self.trackers)
        if unknown:
            raise ValueError(f"unknown objects: {', '.join(sorted(unknown))}")
        decisions = [t.decide(frame, name in moved) for name, t in self.trackers.items()]
        for decision in decisions:
            if decision.action != "keep":
                self.decided[decision.name] += 1
                self.log.append(decision)
        del self.log[:-LOG_LENGTH]
        return decisions


def _growth(now: float, then: float) -> float:
    """now / then; NaN where either is unknown, and 1 where a tree that cost nothing still does."""
    if math.isnan(now) or math.isnan(then):
        return math.nan
    if then <= 0:
        return 1.0 if now <= 0 else math.inf
    return now / then
