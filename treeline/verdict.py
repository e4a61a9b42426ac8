"""Ranks the causes of a frame's cost from an ablation.

What a switch saves is its effect. Two effects need care:

- Half the resolution leaves a part r of the rays, so that it saves (1 - r) of all that their number
  costs: the effect of `ray_count` is what was saved / (1 - r).
- Fewer rays save whatever a ray costs, so that their number would be the first cause of every
  frame. Where a cause makes each ray dear in the same picture (a bad BVH, any-hit), the number is
  charged with what rays cost without it: by the interaction of both, if it was measured, else in
  proportion. Switches that take something out of the picture (foliage) change nothing about that.

A cause's effect is the largest of its switches', and one within noise is none: foliage and any-hit
overlap. Effects of different
causes overlap, too, and do not add up to the frame.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from treeline.ablation_table import AblationTable, Switch
from treeline.causes import CAUSES, makes_rays_dear

# Shares of the frame from which a cause is called so. A fourth of it is worth a change of its own;
# a twentieth is what a report's frames differ by.
PRIMARY_SHARE = 0.25
SECONDARY_SHARE = 0.05
RANKS = ("primary", "secondary", "minor")
DIGITS = 9  # of an effect, so that equal ones tie whatever their differences round to


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause. `interval_ms` holds the effect, where the ablation has intervals; `share` is of
    the frame, and of its growth, if it grew."""

    cause: str
    effect_ms: float
    share: float
    rank: str
    evidence: str
    switches: tuple[str, ...]
    interval_ms: tuple[float, float] | None = None
    share_of_growth: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`findings`, largest effect first, the chapter's order breaking ties; `next`: causes to look
    into, in the chapter's order: those that matter, and those that nobody switched off."""

    findings: tuple[Finding, ...]
    next: tuple[str, ...]
    base_ms: float
    before_ms: float | None

    def facts(self) -> dict[str, Any]:
        """In JSON's types."""
        return {
            "base_ms": self.base_ms,
            "before_ms": self.before_ms,
            "verdict": [
                {
                    "cause": f.cause,
                    "effect_ms": f.effect_ms,
                    "share": f.share,
                    "rank": f.rank,
                    "interval_ms": None if f.interval_ms is None else list(f.interval_ms),
                    "share_of_growth": f.share_of_growth,
                    "switches": list(f.switches),
                    "evidence": f.evidence,
                }
                for f in self.findings
            ],
            "next": list(self.next),
            "measurements": {c.name: c.measure for c in CAUSES if c.name in self.next},
        }


@dataclass(frozen=True, slots=True)
class _Effect:
    """A switch's effect after normalising; `how` says what was done to it."""

    switch: Switch
    ms: float
    factor: float  # ms / what the switch saved
    how: str

    @property
    def interval_ms(self) -> tuple[float, float] | None:
        low, high = self.switch.low_ms, self.switch.high_ms
        return None if low is None or high is None else (self.factor * low, self.factor * high)

    @property
    def worth_ms(self) -> float:
        """What it counts for: nothing where its interval reaches into the noise. A median alone, of
        runs that scatter and perhaps divided by a small part of the rays, would come before an
        effect that is certain."""
        low, high, noise = self.switch.low_ms, self.switch.high_ms, self.switch.noise_ms
        if low is None or high is None or low > noise or high < -noise:
            return self.ms
        return 0.0

    @property
    def stands_out(self) -> bool:
        """Whether it is more than noise, by its interval where there is one."""
        low = self.switch.low_ms
        saved = self.switch.effect_ms if low is None else low
        return saved > self.switch.noise_ms


def verdict(table: AblationTable) -> Verdict:
    """The causes that the table's switches belong to, ranked."""
    by_cause: dict[str, list[_Effect]] = {}
    for switch in table.switches:
        by_cause.setdefault(switch.cause, []).append(_normalise(table, switch))
    findings = [
        _finding(table, cause.name, by_cause[cause.name])
        for cause in CAUSES
        if cause.name in by_cause
    ]
    findings.sort(key=lambda f: -f.effect_ms)  # stable: ties keep the chapter's order
    minor = {f.cause for f in findings if f.rank == "minor"}
    return Verdict(
        findings=tuple(findings),
        next=tuple(cause.name for cause in CAUSES if cause.name not in minor),
        base_ms=table.base_ms,
        before_ms=table.before_ms,
    )


def _normalise(table: AblationTable, switch: Switch) -> _Effect:
    saved = switch.effect_ms
    if switch.cause != "ray_count" or saved <= 0:
        return _Effect(switch, saved, 1.0, "")
    how = []
    dearest = _dearest_per_ray(table)
    cheap = 1.0
    if dearest is not None:
        both = table.interaction(switch.name, dearest.name)
        if both is None:
            cheap = max(0.0, 1 - dearest.effect_ms / table.base_ms)
        else:
            cheap = max(0.0, 1 + both / saved)
        how.append(f"{cheap:.0%} of it without what {dearest.name} costs each ray")
    lost = 1 - (switch.ray_ratio or 0.0)
    if switch.ray_ratio:
        how.append(f"{lost:.0%} of the rays were left out")
    # No more than the whole frame: a frame may gain more than its rays' part, by its caches.
    ms = min(cheap * saved / lost, table.base_ms)
    return _Effect(switch, ms, ms / saved, "; ".join(how))


def _dearest_per_ray(table: AblationTable) -> Switch | None:
    """The switch that saves the most on each ray in the same picture."""
    dear = [
        s for s in table.switches if makes_rays_dear(s.name, s.cause) and s.effect_ms > s.noise_ms
    ]
    return max(dear, key=lambda s: s.effect_ms, default=None)


def _finding(table: AblationTable, cause: str, effects: list[_Effect]) -> Finding:
    strongest_first = sorted(effects, key=lambda e: -e.worth_ms)
    best = strongest_first[0]
    effect_ms = round(best.worth_ms, DIGITS)
    share = effect_ms / table.base_ms
    if not best.stands_out or share < SECONDARY_SHARE:
        rank = "minor"
    else:
        rank = "primary" if share >= PRIMARY_SHARE else "secondary"
    growth = None if table.before_ms is None else table.base_ms - table.before_ms
    return Finding(
        cause=cause,
        effect_ms=effect_ms,
        share=share,
        rank=rank,
        evidence="; ".join(_evidence(table, e) for e in strongest_first),
        switches=tuple(e.switch.name for e in strongest_first),
        interval_ms=best.interval_ms,
        share_of_growth=effect_ms / growth if growth is not None and growth > 0 else None,
    )


def _evidence(table: AblationTable, effect: _Effect) -> str:
    switch = effect.switch
    on_ms = switch.off_ms + switch.effect_ms
    # "half_resolution" is a state, the others are things that were taken away.
    what = "half resolution" if switch.ray_ratio else f"without {switch.name}"
    text = f"{what} {switch.off_ms:.3g} ms instead of {on_ms:.3g}"
    if effect.how:
        text += f" ({effect.how})"
    if not effect.stands_out:
        text += ", within noise" if switch.effect_ms >= -switch.noise_ms else ", which costs more"
    return text


def ranked(findings: tuple[Finding, ...]) -> Mapping[str, tuple[str, ...]]:
    """The causes of each rank, in the findings' order."""
    return {rank: tuple(f.cause for f in findings if f.rank == rank) for rank in RANKS}
