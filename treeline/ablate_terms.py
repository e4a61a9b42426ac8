"""The terms of a frame's cost (passes.option.COST_TERMS), each apart from the others, and which of
them a switch changed.

Terms of counted frames are exact; they differ where more than COUNT_TOLERANCE does, since a switch
that sends fewer rays sends other ones. Those of timed frames come from the interleaved runs, and
differ where the effect is certain and more than noise. Work within a pass cannot be told apart: a
traversal holds its alpha tests, so that the time a node is only judged where their number is equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.frame_stats import FrameStats
from treeline.paired_effects import undeclared_changes

COUNT_TOLERANCE = 0.03
# What a pass is for, by the first part of its name.
TIMED = {
    "time a node": ("traverse",),
    "queues": ("rays", "arguments", "sort"),
    "hit shading": ("shade",),
    "build and update": ("update",),
}


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counted frame says, by ray type; `kinds` are rays by (type, slot of a pixel's)."""

    rays: Mapping[str, int]
    nodes: Mapping[str, int]
    any_hits: Mapping[str, int]
    shaded: int  # rays whose hit or miss is shaded
    layout_bytes: int
    kinds: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """In JSON's types."""
        return {
            "rays": dict(self.rays),
            "nodes": dict(self.nodes),
            "any_hits": dict(self.any_hits),
            "layout_bytes": self.layout_bytes,
        }


def counted_changes(on: Counted, off: Counted) -> dict[str, float]:
    """Term -> change, as a part of what it was, of those that counts alone decide."""
    found = {}
    changes: dict[str, float] = {
        "rays": _change(sum(on.rays.values()), sum(off.rays.values())),
        "nodes": _most(on.rays, off.rays, on.nodes, off.nodes),
        "any-hit": _most(on.rays, off.rays, on.any_hits, off.any_hits),
        "layout bytes": _change(on.layout_bytes, off.layout_bytes),
    }
    for term, change in changes.items():
        if abs(change) > COUNT_TOLERANCE:
            found[term] = change
    return found


def _most(
    rays_on: Mapping[str, int],
    rays_off: Mapping[str, int],
    on: Mapping[str, int],
    off: Mapping[str, int],
) -> float:
    """The largest change of a count a ray, over the types that both frames send."""
    changes = [
        _change(on[name] / rays_on[name], off[name] / rays_off[name])
        for name in rays_on
        if rays_on[name] and rays_off.get(name)
    ]
    return max(changes, key=abs, default=0.0)


def _change(before: float, after: float) -> float:
    """As a part of what it was; of what was nothing, 1."""
    return after / before - 1 if before else float(after > 0)


def timed_changes(
    on: Sequence[FrameStats],
    off: Sequence[FrameStats],
    counts_on: Counted,
    counts_off: Counted,
) -> dict[str, float]:
    """Term -> change, as a part of what it was, of those that passes' times decide."""
    before, after = timed_terms(on, counts_on), timed_terms(off, counts_off)
    if counts_on.any_hits != counts_off.any_hits:
        before.pop("time a node", None)
    both = {name: before[name] for name in before if name in after}
    effects = undeclared_changes(both, {name: after[name] for name in both}, "")
    return {
        term: _change(float(np.median(before[term])), float(np.median(after[term])))
        for term in effects
    }


def timed_terms(runs: Sequence[FrameStats], counts: Counted) -> dict[str, NDArray[np.float64]]:
    """[runs] of each term that these frames have: nanoseconds a node visit, a ray, a hit or miss;
    milliseconds of builds and updates."""
    units = {
        "time a node": sum(counts.nodes.values()),
        "queues": sum(counts.rays.values()),
        "hit shading": counts.shaded,
    }
    found = {}
    for term, kinds in TIMED.items():
        ms = np.array(
            [
                sum(t for name, t in run.passes.items() if name.split("/")[0] in kinds)
                for run in runs
            ]
        )
        unit = units.get(term)
        if unit is None:
            found[term] = ms
        elif unit:
            found[term] = 1e6 * ms / unit
    return found
