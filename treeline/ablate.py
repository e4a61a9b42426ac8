"""Measures an ablation: one thing off at a time, and the three strongest two by two.

Variants' frames are made, drawn and counted before the first one is timed. Then runs take turns, on
and off, in this process: what the machine does meanwhile meets both. No time comes from a counted
frame, and a variant's counted and timed frames hit the same. Every frame is frame 0 in one pose:
where things move, each updates them once more. A frame's time is its GPU time; on CPU adapters it
is the wall clock's. Times are milliseconds.

What takes longer than it may is left out and named: switches whose frames could not be made in
time, turns beyond the fewest, pairs of switches. What is known so far is handed out after each
frame that was made and every second of timing, so that an interrupted ablation leaves a table.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.scene.pose import moves
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.rays import frame_rays
from passes.senders import slot_block
from treeline.ablate_switches import Setup, Switch, find_switches
from treeline.ablate_terms import TIMED, WHOLE, Judged, counted_changes, timed_changes
from treeline.ablate_variants import Prepare, Variant, Variants
from treeline.ablation_table import parse_table
from treeline.causes import HALF_RESOLUTION
from treeline.measure import Progress
from treeline.paired_effects import FEWEST_PAIRS, interaction, switch_fields
from treeline.report_reuse import REUSED, kept_facts
from treeline.time_limit import NO_TIME, TimeLimit
from treeline.verdict import Verdict, verdict

BASE = "base"  # the frame with everything on, beside switches' names
STRONGEST = 3  # switches that are turned off two by two
TIMED_TERMS = len(TIMED) + len(WHOLE)
SLOW = 3.0  # times the base's time
# Of the time that an ablation may take: until then frames are made, and switches timed.
MAKING_END, SWITCHES_END = 0.6, 0.8
KEEP_S = 1.0  # between two tables that are handed out while runs are timed


@dataclass(frozen=True, slots=True)
class Ablation:
    """`table` as treeline/ablation_table.py reads it; its context holds `terms`, by switch."""

    table: dict[str, Any]
    verdict: Verdict


Keep = Callable[[dict[str, Any]], None]


def ablate(
    device: Device,
    setup: Setup,
    prepare: Prepare,
    size: tuple[int, int],
    pose: dict[str, Any],
    progress: Progress,
    *,
    pairs: int = FEWEST_PAIRS,
    only: Sequence[str] = (),
    warmup_ms: float = 0.0,
    budget: TimeLimit | None = None,
    keep: Keep = lambda table: None,
) -> Ablation:
    """Measures every switch of this frame (or those named) in `pairs` of runs, fewer where the
    `budget` ends before. UserError for a switch that there is not, one that changes nothing here,
    and where the budget is too short for any. `keep` is given the table as far as it is known."""
    switches, left_out = find_switches(setup, moves(setup.scene) and bool(pose))
    measuring = Measuring(
        Variants(device, prepare, size, pose),
        setup,
        progress,
        budget or TimeLimit(),
        left_out,
        keep,
    )
    measuring.make(_choose(switches, left_out, only), warmup_ms)
    measuring.take_turns(pairs, warmup_ms)
    table = measuring.table()
    measuring.measure_interactions(_strongest(verdict(parse_table(table))), pairs)
    table = measuring.table()
    return Ablation(table, verdict(parse_table(table)))


Runs = tuple[list[FrameStats], list[FrameStats]]


@dataclass(slots=True)
class Measuring:
    """An ablation as far as it is. `left_out` says of a switch why it is not measured,
    `unmeasured` what else there was no time for, `reused` what frames cost that run what others
    reuse (`kept_facts`): the base's, and by switch."""

    variants: Variants
    setup: Setup
    progress: Progress
    budget: TimeLimit
    left_out: dict[str, str]
    keep: Keep
    switches: dict[str, Switch] = field(default_factory=dict)
    frames: dict[str, Variant] = field(default_factory=dict)
    judged: dict[str, Judged] = field(default_factory=dict)
    runs: dict[str, Runs] = field(default_factory=dict)
    interactions: list[dict[str, Any]] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)
    reused: dict[str, dict[str, Any]] = field(default_factory=dict)
    doing: str = ""
    base: Variant = field(init=False)

    def make(self, chosen: Sequence[Switch], warmup_ms: float) -> None:
        """The base, then a frame of each switch while there is time to make and to time it."""
        self.progress.begin("making the frames", 1 + len(chosen))
        self.base, counted = self.variants.make(self.setup)
        self.progress.advance("base")
        longest = 0.0  # not the base's, which comes with the scene's structure
        for switch in chosen:
            self.doing = f"making {switch.name}"
            with_it = self._turn_seconds() + 2 * self.base.seconds
            timing = FEWEST_PAIRS * with_it + warmup_ms / 1e3
            in_time = self.budget.left(MAKING_END) > 0
            if not in_time or self.budget.left(SWITCHES_END) < timing + longest:
                self.left_out[switch.name] = NO_TIME
                continue
            start = self.budget.clock()
            self.frames[switch.name], other = self.variants.make(switch.off(self.setup))
            longest = max(longest, self.budget.clock() - start)
            self.judged[switch.name] = counted_changes(counted, other)
            self.switches[switch.name] = switch
            self.runs[switch.name] = ([], [])
            self.progress.advance(f"{switch.name} {self.budget.clock() - start:.1f} s")
            self.keep(self.table())
        if not self.frames:
            raise UserError(
                f"{self.budget.seconds:.3g} s are too few for any switch of this scene: raise "
                "--minutes, or name one by --only"
            )

    def _turn_seconds(self) -> float:
        """What one turn over all switches takes."""
        return sum(self.base.seconds + variant.seconds for variant in self.frames.values())

    def take_turns(self, pairs: int, warmup_ms: float) -> None:
        """Runs on and off, up to [pairs] of each switch; which of the two is first alternates. A
        frame that is SLOW is known for that after FEWEST_PAIRS, and these are always timed."""
        self._warm_up(warmup_ms)
        self.progress.begin("timing", pairs * len(self.frames))
        kept_at = -math.inf
        for turn in range(pairs):
            self.doing = f"timing pair {turn + 1} of {pairs}"
            if turn >= FEWEST_PAIRS and self.budget.left(SWITCHES_END) < self._turn_seconds():
                self.unmeasured.append(f"pairs {turn + 1} to {pairs} of each switch")
                break
            for name, variant in self.frames.items():
                on, off = map(_ms, self.runs[name])
                if turn >= FEWEST_PAIRS and np.median(off) > SLOW * np.median(on):
                    self.progress.advance(name)
                    continue
                both = [(self.base, self.runs[name][0]), (variant, self.runs[name][1])]
                for item, series in reversed(both) if turn % 2 else both:
                    series.append(item.run())
                self.progress.advance(name)
            # A GPU waits meanwhile: not in every turn, which may take milliseconds.
            if self.budget.clock() - kept_at >= KEEP_S or turn == pairs - 1:
                self.keep(self.table())
                kept_at = self.budget.clock()

        self._redraw()

    def _redraw(self) -> None:
        """What the base and others take whose frames reuse passes, where they run them."""
        every = [stats for on, _ in self.runs.values() for stats in on]
        of = {BASE: (self.base, every)}
        of |= {name: (item, self.runs[name][1]) for name, item in self.frames.items()}
        for name, (item, runs) in of.items():
            if runs and runs[-1].reused:
                steady, whole = float(np.median(_ms(runs))), item.redraw().frame_total_ms
                self.reused[name] = kept_facts(len(runs[-1].reused), steady, whole)

    def _warm_up(self, least_ms: float) -> None:
        """An idle GPU needs about a second of work to reach its clock."""
        start = self.budget.clock()
        while 1e3 * (self.budget.clock() - start) < least_ms:
            self.base.run()

    def measure_interactions(self, strongest: Sequence[str], pairs: int) -> None:
        """What each two of the strongest save together beyond the sum, from four interleaved
        series; as many couples as there is time for."""
        chosen = [switch for switch in self.switches.values() if switch.name in strongest]
        couples = [(a, b) for i, a in enumerate(chosen) for b in chosen[i + 1 :]]
        self.progress.begin("making the frames of two switches", len(couples))
        four: dict[tuple[str, str], tuple[Variant, ...]] = {}
        longest = self.base.seconds
        for a, b in couples:
            names = f"{a.name} and {b.name}"
            self.doing = f"making {names}"
            self.keep(self.table())
            timing = FEWEST_PAIRS * sum(v.seconds for items in four.values() for v in items)
            own = FEWEST_PAIRS * 4 * self.base.seconds
            if self.budget.left() < timing + own + longest:
                self.unmeasured.append(f"{names} together")
                continue
            start = self.budget.clock()
            both, _ = self.variants.make(b.off(a.off(self.setup)))
            longest = max(longest, self.budget.clock() - start)
            four[a.name, b.name] = (self.base, self.frames[a.name], self.frames[b.name], both)
            self.progress.advance(names)
        self._time_interactions(four, pairs)

    def _time_interactions(
        self, four: dict[tuple[str, str], tuple[Variant, ...]], pairs: int
    ) -> None:
        series: dict[tuple[str, str], list[list[float]]] = {
            names: [[] for _ in items] for names, items in four.items()
        }
        seconds = sum(variant.seconds for items in four.values() for variant in items)
        self.progress.begin("timing two switches", pairs * len(four))
        for turn in range(pairs if four else 0):
            self.doing = f"timing couples, run {turn + 1} of {pairs}"
            if turn >= FEWEST_PAIRS and self.budget.left() < seconds:
                self.unmeasured.append(f"runs {turn + 1} to {pairs} of two switches")
                break
            for names, items in four.items():
                order = range(len(items))
                for place in reversed(order) if turn % 2 else order:
                    series[names][place].append(items[place].run().frame_total_ms)
                self.progress.advance(", ".join(names))
        for names, (on, without_a, without_b, without_both) in series.items():
            effect = interaction(on, without_a, without_b, without_both)
            self.interactions.append(
                {
                    "switches": list(names),
                    "effect_ms": effect.ms,
                    "interval_ms": [effect.low, effect.high],
                }
            )
        self.doing = ""

    def table(self) -> dict[str, Any]:
        """What is known: of few pairs the medians, of FEWEST_PAIRS and more effects."""
        fields: dict[str, Any] = {}
        terms: dict[str, Any] = {}
        for name, switch in self.switches.items():
            on, off = self.runs[name]
            found = self.judged[name]
            if len(on) >= FEWEST_PAIRS:
                ratio = None
                if name == HALF_RESOLUTION:
                    options = switch.off(self.setup).settings.frame
                    ratio = _ray_ratio(self.base, self.frames[name], options)
                fields[name] = switch_fields(_ms(on), _ms(off), ratio)
                counts = self.base.counts, self.frames[name].counts
                timed = timed_changes(on, off, *counts, len(self.switches) * TIMED_TERMS)
                found = Judged(timed.changes | found.changes, timed.unjudged | found.unjudged)
            elif on and off:
                fields[name] = {
                    "on_ms": float(np.median(_ms(on))),
                    "off_ms": float(np.median(_ms(off))),
                }
            terms[name] = {
                **_terms(switch, found),
                "counted": self.frames[name].counts.facts(),
                "pairs": min(len(on), len(off)),
            }
        every = [ms for on, _ in self.runs.values() for ms in _ms(on)]
        context: dict[str, Any] = {
            "pairs": max((item["pairs"] for item in terms.values()), default=0),
            "terms": terms,
            "left_out": self.left_out,
            "unmeasured": self.unmeasured,
            **({REUSED: self.reused} if self.reused else {}),
        }
        if self.doing:
            context["unfinished"] = f"it ended while {self.doing}"
        return {
            "base_ms": float(np.median(every)) if every else 1e3 * self.base.seconds,
            "switches": fields,
            "interactions": self.interactions,
            "context": context,
        }


def _choose(
    switches: Sequence[Switch], left_out: dict[str, str], only: Sequence[str]
) -> list[Switch]:
    known = [switch.name for switch in switches]
    for name in only:
        if name in left_out:
            raise UserError(f"{name} cannot be switched off here: {left_out[name]}")
        if name not in known:
            raise UserError(f"no switch is named '{name}'; there are {', '.join(known)}")
    return [switch for switch in switches if not only or switch.name in only]


def _ms(runs: Sequence[FrameStats]) -> list[float]:
    return [stats.frame_total_ms for stats in runs]


def _ray_ratio(base: Variant, half: Variant, options: FrameOptions) -> float | None:
    """What is left of the rays that are sent once a block of pixels."""
    rays = frame_rays(options)
    shared = [
        (ray.name, kind)
        for ray in rays
        for kind in range(ray.slots_per_pixel)
        if slot_block(options, rays, ray, kind) > 1
    ]
    before = sum(base.counts.kinds[kind] for kind in shared)
    return sum(half.counts.kinds[kind] for kind in shared) / before if before else None


def _terms(switch: Switch, found: Judged) -> dict[str, Any]:
    """What the switch claims to change, what it changed, what of that must follow, and what it
    changed unclaimed."""
    changes = found.changes
    return {
        "off": switch.what,
        "declared": list(switch.terms),
        "changes": changes,
        "follows": {term: switch.follows[term] for term in changes if term in switch.follows},
        "undeclared": [t for t in changes if t not in switch.terms and t not in switch.follows],
        "unjudged": {term: why for term, why in found.unjudged.items() if term not in changes},
    }


def _strongest(found: Verdict) -> list[str]:
    """The strongest switch of each of the strongest causes, then of what is left."""
    first = [finding.switches[0] for finding in found.findings]
    others = [name for finding in found.findings for name in finding.switches[1:]]
    return [*first, *others][:STRONGEST]
