"""Twin of count_tests.wgsl: alpha tests that have a pass of their own."""

from typing import Any

import numpy as np

from bvh.counters import COUNTERS, CounterTable
from passes.rays import RayType
from passes.slot_counts import SLOT_COUNTS
from passes.twins.rays import RECORD_TWINS
from passes.twins.wgsl_functions import U32, Flags


def count_tests(
    frame: Any,
    counters: U32,
    slot_counts: U32,
    ray: RayType,
    records: Any,
    instance: U32,
    accepted: Flags,
    sampled: Flags,
) -> None:
    """Of the rays `records` [n], inside `instance` [n]: which tests were `accepted`, and which
    `sampled` a texture."""
    slots = int(frame["width"]) * int(frame["height"]) * ray.slots_per_pixel
    planes = slot_counts.reshape(len(SLOT_COUNTS), slots)
    slot = RECORD_TWINS[ray.name].ray_slot(records)
    planes[SLOT_COUNTS.index("any_hits")][slot] += np.uint32(1)
    nodes = planes[SLOT_COUNTS.index("nodes")][slot[accepted]].sum()
    counters[COUNTERS.index("nodes_hit")] += np.uint32(nodes)
    table = CounterTable.of(counters)
    every = np.ones(len(slot), np.bool_)
    counted = {"any_hits": every, "alpha_samples": sampled, "hits": accepted, "rejected": ~accepted}
    for name, lanes in counted.items():
        counters[COUNTERS.index(name)] += np.uint32(lanes.sum())
        table.charge(name, instance[lanes])
