"""Measures an ablation: one thing off at a time, and the three strongest two by two.

Every variant's frame is made, drawn and counted before the first one is timed. Then runs take
turns, on and off, in this process: what the machine does meanwhile meets both. No time comes from a
counted frame, and a variant's counted and timed frames hit the same. Every frame is frame 0 in one
pose: where things move, each updates them once more. A frame's time is its GPU time; on CPU
adapters it is the wall clock's. Times are milliseconds.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.gpu.device import Device
from engine.gpu.errors import CheckFailed, UserError
from engine.scene.pose import moves
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import PreparedScene
from passes.rays import frame_rays
from passes.senders import slot_block
from treeline.ablate_switches import Setup, Switch, find_switches
from treeline.ablate_terms import (
    TIMED,
    WHOLE,
    Judged,
    Totals,
    counted_changes,
    timed_changes,
    totals,
)
from treeline.ablation_table import parse_table
from treeline.causes import HALF_RESOLUTION
from treeline.counted_rays import CountedRays, read_counted
from treeline.measure import Progress
from treeline.paired_effects import FEWEST_PAIRS, interaction, switch_fields
from treeline.verdict import Verdict, verdict

STRONGEST = 3  # switches that are turned off two by two
TIMED_TERMS = len(TIMED) + len(WHOLE)
SLOW = 3.0  # times the base's time
DRAWS = 4  # until a frame's queues and stacks have the room that it needs

# (scene, build options, group) -> the structure
Prepare = Callable[[Setup], PreparedScene]


@dataclass(frozen=True, slots=True)
class Variant:
    """A frame that is drawn again and again, and the sums of a counted one like it."""

    frame: HybridFrame
    counts: Totals

    def run(self) -> FrameStats:
        stats = self.frame.run(0)
        if not stats.valid:
            raise CheckFailed(f"a timed frame failed: {'; '.join(stats.failures) or 'no room'}")
        return stats


class Variants:
    """Makes variants on a device. Frames share what is on the GPU where scene, build and way of
    updating are equal; `pose` is the clip and time of frames whose scene moves."""

    def __init__(
        self, device: Device, prepare: Prepare, size: tuple[int, int], pose: dict[str, Any]
    ) -> None:
        self.device, self.size, self.pose = device, size, pose
        self._prepare = prepare
        self._scenes: dict[Any, GpuScene] = {}
        self._base: HybridFrame | None = None

    def make(self, setup: Setup) -> tuple[Variant, CountedRays]:
        """CheckFailed where the counted frame hits something else."""
        frame = self._draw(setup, count=False)
        counting = self._draw(setup, count=True)
        if counting.result_hash() != frame.result_hash():
            raise CheckFailed("a counted frame hit something else: its counts explain no time")
        counted = _read(counting)
        return Variant(frame, totals(counted)), counted

    def count(self, setup: Setup) -> CountedRays:
        """Without a frame to time."""
        return _read(self._draw(setup, count=True))

    def _draw(self, setup: Setup, *, count: bool) -> HybridFrame:
        scene = self._scene(setup)
        width, height = self.size
        options = replace(setup.settings.frame, width=width, height=height, count=count)
        frame = HybridFrame(self.device, scene.prepared, options, scene)
        self._base = self._base or frame
        # The base's view and default radius: a scene that lacks something has other bounds.
        base = self._base.inputs
        given = replace(
            frame.inputs,
            camera=base.camera,
            light=base.light,
            more_lights=base.more_lights,
            environment=base.environment,
            bounds=base.bounds,
            occlusion_radius=options.occlusion_radius or base.occlusion_radius,
        )
        pose = self.pose if scene.moving else {"clip": None}
        frame.inputs = replace(setup.inputs(given), **pose)
        if not count:
            frame.remember()
        for _ in range(DRAWS):
            stats = frame.run(0)
            if stats.valid:
                return frame
        raise CheckFailed(f"a frame failed: {'; '.join(stats.failures) or 'no room in its queues'}")

    def _scene(self, setup: Setup) -> GpuScene:
        names = tuple(instance.name for instance in setup.scene.instances)
        update = setup.settings.frame.update if moves(setup.scene) else None
        key = (names, setup.settings.build, setup.settings.group, update)
        if key not in self._scenes:
            self._scenes[key] = GpuScene(self.device, self._prepare(setup))
        return self._scenes[key]


def _read(frame: HybridFrame) -> CountedRays:
    return read_counted(frame.data, frame.scene.prepared.bvh.words.nbytes)


@dataclass(frozen=True, slots=True)
class Ablation:
    """`table` as treeline/ablation_table.py reads it; its context holds `terms`, by switch."""

    table: dict[str, Any]
    verdict: Verdict


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
) -> Ablation:
    """Measures every switch of this frame (or those named) in `pairs` of runs. UserError for a
    switch that there is not, and one that changes nothing here."""
    switches, left_out = find_switches(setup, moves(setup.scene) and bool(pose))
    chosen = _choose(switches, left_out, only)
    variants = Variants(device, prepare, size, pose)
    progress.begin("making the frames", 1 + len(chosen))
    base, counted = variants.make(setup)
    progress.advance("base")
    frames: dict[str, Variant] = {}
    judged: dict[str, Judged] = {}
    for switch in chosen:
        frames[switch.name], other = variants.make(switch.off(setup))
        judged[switch.name] = counted_changes(counted, other)
        progress.advance(switch.name)
    _warm_up(base, warmup_ms)
    runs = _take_turns(base, frames, pairs, progress)

    fields: dict[str, Any] = {}
    terms: dict[str, Any] = {}
    for switch in chosen:
        on, off = runs[switch.name]
        ratio = None
        if switch.name == HALF_RESOLUTION:
            ratio = _ray_ratio(base, frames[switch.name], switch.off(setup).settings.frame)
        fields[switch.name] = switch_fields(_ms(on), _ms(off), ratio)
        counts = frames[switch.name].counts
        timed = timed_changes(on, off, base.counts, counts, len(chosen) * TIMED_TERMS)
        terms[switch.name] = {
            **_terms(switch, judged[switch.name], timed),
            "counted": counts.facts(),
        }
    every = [ms for on, _ in runs.values() for ms in _ms(on)]
    table: dict[str, Any] = {"base_ms": float(np.median(every)), "switches": fields}
    strongest = _strongest(verdict(parse_table(table)))
    table["interactions"] = _interactions(
        variants, setup, base, frames, [s for s in chosen if s.name in strongest], pairs, progress
    )
    table["context"] = {"pairs": pairs, "terms": terms, "left_out": left_out}
    return Ablation(table, verdict(parse_table(table)))


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


def _warm_up(base: Variant, least_ms: float) -> None:
    """An idle GPU needs about a second of work to reach its clock."""
    start = time.perf_counter()
    while 1e3 * (time.perf_counter() - start) < least_ms:
        base.run()


Runs = tuple[list[FrameStats], list[FrameStats]]


def _take_turns(
    base: Variant, frames: dict[str, Variant], pairs: int, progress: Progress
) -> dict[str, Runs]:
    """Switch -> runs on and off, up to [pairs] each; which of the two is first alternates. A frame
    that is SLOW is known for that after FEWEST_PAIRS."""
    runs: dict[str, Runs] = {name: ([], []) for name in frames}
    progress.begin("timing", pairs * len(frames))
    for turn in range(pairs):
        for name, variant in frames.items():
            on, off = map(_ms, runs[name])
            if turn >= FEWEST_PAIRS and np.median(off) > SLOW * np.median(on):
                progress.advance(name)
                continue
            both = [(base, runs[name][0]), (variant, runs[name][1])]
            for item, series in reversed(both) if turn % 2 else both:
                series.append(item.run())
            progress.advance(name)
    return runs


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


def _terms(switch: Switch, counted: Judged, timed: Judged) -> dict[str, Any]:
    """What the switch claims to change, what it changed, what of that must follow, and what it
    changed unclaimed."""
    changes = timed.changes | counted.changes
    unjudged = {
        t: why for t, why in (timed.unjudged | counted.unjudged).items() if t not in changes
    }
    return {
        "off": switch.what,
        "declared": list(switch.terms),
        "changes": changes,
        "follows": {term: switch.follows[term] for term in changes if term in switch.follows},
        "undeclared": [t for t in changes if t not in switch.terms and t not in switch.follows],
        "unjudged": unjudged,
    }


def _strongest(found: Verdict) -> list[str]:
    """The strongest switch of each of the strongest causes, then of what is left."""
    first = [finding.switches[0] for finding in found.findings]
    others = [name for finding in found.findings for name in finding.switches[1:]]
    return [*first, *others][:STRONGEST]


def _interactions(
    variants: Variants,
    setup: Setup,
    base: Variant,
    frames: dict[str, Variant],
    strongest: Sequence[Switch],
    pairs: int,
    progress: Progress,
) -> list[dict[str, Any]]:
    """What each two of the strongest save together beyond the sum, from four interleaved series."""
    couples = [(a, b) for i, a in enumerate(strongest) for b in strongest[i + 1 :]]
    progress.begin("making the frames of two switches", len(couples))
    four = {}
    for a, b in couples:
        both, _ = variants.make(b.off(a.off(setup)))
        four[a.name, b.name] = (base, frames[a.name], frames[b.name], both)
        progress.advance(f"{a.name}, {b.name}")
    series: dict[tuple[str, str], list[list[float]]] = {
        names: [[] for _ in items] for names, items in four.items()
    }
    progress.begin("timing two switches", pairs * len(couples))
    for turn in range(pairs):
        for names, items in four.items():
            order = range(len(items))
            for place in reversed(order) if turn % 2 else order:
                series[names][place].append(items[place].run().frame_total_ms)
            progress.advance(", ".join(names))
    found = []
    for names, (on, without_a, without_b, without_both) in series.items():
        effect = interaction(on, without_a, without_b, without_both)
        found.append(
            {
                "switches": list(names),
                "effect_ms": effect.ms,
                "interval_ms": [effect.low, effect.high],
            }
        )
    return found
