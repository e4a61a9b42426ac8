"""Twin of count_rounds.wgsl: a ray's planes add up over its rounds."""

from typing import Any

import numpy as np

from bvh.counters import COUNTERS, CounterTable
from passes.rays import RayType
from passes.slot_counts import SLOT_COUNTS
from passes.twins.rays import RECORD_TWINS
from passes.twins.traverse_round import Round
from passes.twins.wgsl_functions import U32, Flags


def count_round(
    frame: Any,
    counters: U32,
    slot_counts: U32,
    ray: RayType,
    found: Round,
    hit: Flags,
    first: bool,
    samples: int = 0,
) -> None:
    """`hit` [n] says which rays have their hit now, `samples` how many textures were sampled."""
    spent = found.result.counters
    slots = int(frame["width"]) * int(frame["height"]) * ray.slots_per_pixel
    slot = RECORD_TWINS[ray.name].ray_slot(found.records)
    planes = slot_counts.reshape(len(SLOT_COUNTS), slots)
    for plane, name in zip(planes, SLOT_COUNTS, strict=True):
        new = getattr(spent, name)
        plane[slot] = np.maximum(plane[slot], new) if name == "stack_max" else plane[slot] + new
    totals = {name: getattr(spent, name).sum() for name in COUNTERS if hasattr(spent, name)}
    totals["rays"] = len(found.rays) if first else 0
    totals["hits"] = hit.sum()
    totals["alpha_samples"] = samples
    CounterTable.of(counters).charge("hits", found.result.instance[hit])
    totals["overflows"] = (found.result.overflows > 0).sum()
    totals["nodes_hit"] = planes[SLOT_COUNTS.index("nodes")][slot[hit]].sum()
    for index, name in enumerate(COUNTERS):
        if name == "stack_max":
            counters[index] = max(counters[index], spent.stack_max.max(initial=0))
        else:
            counters[index] = int(counters[index]) + int(totals.get(name, 0))
