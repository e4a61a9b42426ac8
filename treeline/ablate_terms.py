"""The terms of a frame's cost (passes.option.COST_TERMS), each apart from the others, and which of
them a switch changed.

Counted terms are compared ray by ray (treeline/counted_rays.py), each over rays that the terms
before it leave alone, in the order in which one leads to the next:

- rays: sent from where both frames have the same surface or hit;
- any-hit: calls of the rays that both frames send;
- nodes: visits of those of them that make as many any-hit calls.

Timed terms of a ray type are what its passes take in the interleaved runs: their fixed part is not
told from their work, so that they are only judged where the frames have as much of that. Others are
what the whole frame's passes of a kind take. A term has changed
where its effect is certain, at a level that all tests of an ablation share, and larger than
TIME_TOLERANCE. What cannot be judged is named with its reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.frame_stats import FrameStats
from treeline.cost_terms import ANY_HIT, QUEUES, SHADING, TRAVERSAL
from treeline.counted_rays import CountedRays, aligned, same_parents, same_rays
from treeline.paired_effects import certain_change

# Rounding sends a ray past an edge here and there.
COUNT_TOLERANCE = 0.02
TIME_TOLERANCE = 0.05
# What a pass is for, by the first part of its name: of a ray type, or of the whole frame.
TIMED = {
    "time a node": TRAVERSAL,
    "queues": QUEUES,
    "hit shading": SHADING,
    "any-hit": ANY_HIT,
}
WHOLE = {
    "build and update": ("update",),
    # Not gbuffer/rays, which visits nodes.
    "raster": ("gbuffer/raster", "gbuffer/resolve", "motion", "shadow_map", "probe", "screen"),
    "filters": ("light", "history", "denoise"),
}


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums of a counted frame by ray type; `kinds` are rays by (type, slot of a pixel's)."""

    rays: Mapping[str, int]
    nodes: Mapping[str, int]
    any_hits: Mapping[str, int]
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


def totals(counted: CountedRays) -> Totals:
    types = counted.types
    return Totals(
        rays={name: int(rays.sent.sum()) for name, rays in types.items()},
        nodes={name: int(rays.nodes.sum(dtype=np.int64)) for name, rays in types.items()},
        any_hits={name: int(rays.any_hits.sum(dtype=np.int64)) for name, rays in types.items()},
        layout_bytes=counted.layout_bytes,
        kinds=counted.kinds(),
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """Term -> change, as a part of what it was (by ray type the largest), of those that changed;
    term -> why nothing can be said about it."""

    changes: dict[str, float]
    unjudged: dict[str, str]


def counted_changes(on: CountedRays, off: CountedRays) -> Judged:
    """Of the terms that counts alone decide."""
    on, off = aligned(on, off)
    # Term -> (before, after) by ray type; none where no ray is left to compare.
    sums: dict[str, list[tuple[float, float]]] = {"rays": [], "any-hit": [], "nodes": []}
    for name, before in on.types.items():
        after = off.types[name]
        judged = same_parents(on, off, name)
        sent = _sums(before.sent, after.sent, judged)
        if any(sent):
            sums["rays"].append(sent)
        same = same_rays(before, after)
        alike = same & (before.any_hits == after.any_hits)
        if same.any():
            sums["any-hit"].append(_sums(before.any_hits, after.any_hits, same))
        if alike.any():
            sums["nodes"].append(_sums(before.nodes, after.nodes, alike))
    sums["layout bytes"] = [(on.layout_bytes, off.layout_bytes)]
    largest = {
        term: max((_change(*pair) for pair in pairs), key=abs)
        for term, pairs in sums.items()
        if pairs
    }
    return Judged(
        {term: change for term, change in largest.items() if abs(change) > COUNT_TOLERANCE},
        {term: "no ray is the same in both frames" for term, pairs in sums.items() if not pairs},
    )


def _sums(
    before: NDArray[Any], after: NDArray[Any], rays: NDArray[np.bool_]
) -> tuple[float, float]:
    """Over those rays, of a value in both frames."""
    return float(before[rays].sum(dtype=np.int64)), float(after[rays].sum(dtype=np.int64))


def _change(before: float, after: float) -> float:
    """As a part of what it was; of what was nothing, 1."""
    return after / before - 1 if before else float(after > 0)


def timed_changes(
    on: Sequence[FrameStats],
    off: Sequence[FrameStats],
    counts_on: Totals,
    counts_off: Totals,
    tests: int,
) -> Judged:
    """Of the terms that passes' times decide, from interleaved runs [n] each; `tests` is how many
    such questions the whole ablation asks."""
    found = Judged({}, {})
    names = list(dict.fromkeys(name for run in (*on, *off) for name in run.passes))
    types = list(dict.fromkeys([*counts_on.rays, *counts_off.rays]))
    for term, kinds in TIMED.items():
        groups: dict[str, list[str]] = {}
        for name in names:
            if name.split("/")[0] in kinds:
                groups.setdefault(_type_of(name, types), []).append(name)
        changes, differ = [], []
        for group, passes in groups.items():
            of = [group] if group else types
            if all(_as_many(counts_on, counts_off, ray_type) for ray_type in of):
                changes.append(certain_change(_ms(on, passes), _ms(off, passes), tests))
            else:
                differ += of
        certain = [change for change in changes if abs(change) > TIME_TOLERANCE]
        if certain:
            found.changes[term] = max(certain, key=abs)
        elif differ and not changes:
            there = ", ".join(dict.fromkeys(differ))
            found.unjudged[term] = f"rays, nodes or any-hit calls differ in number: {there}"
    for term, kinds in WHOLE.items():
        passes = [name for name in names if f"{name}/".startswith(tuple(f"{k}/" for k in kinds))]
        change = certain_change(_ms(on, passes), _ms(off, passes), tests)
        if abs(change) > TIME_TOLERANCE:
            found.changes[term] = change
    return found


def _type_of(name: str, types: Iterable[str]) -> str:
    """The ray type that a pass is for; nothing for one that is for several."""
    part = name.split("/")[1]
    found = [t for t in types if part == t or part.startswith(f"{t}_")]
    return max(found, key=len, default="")  # a further bounce's name begins as the first's


def _as_many(on: Totals, off: Totals, ray_type: str) -> bool:
    """Whether both frames have as much to do for a ray type, which both of them send: passes of a
    type take time even if no ray is sent."""
    if ray_type not in on.rays or ray_type not in off.rays:
        return False
    pairs = [
        (counts_on.get(ray_type, 0), counts_off.get(ray_type, 0))
        for counts_on, counts_off in (
            (on.rays, off.rays),
            (on.nodes, off.nodes),
            (on.any_hits, off.any_hits),
        )
    ]
    return all(abs(_change(*pair)) <= COUNT_TOLERANCE for pair in pairs)


def _ms(runs: Sequence[FrameStats], passes: Sequence[str]) -> NDArray[np.float64]:
    """[runs] what these passes took together."""
    return np.array([sum(run.passes.get(name, 0.0) for name in passes) for run in runs])
