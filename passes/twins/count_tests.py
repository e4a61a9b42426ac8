"""Twin of count_tests.wgsl: alpha tests that have a pass of their own."""

from typing import Any

import numpy as np

from bvh.counters import COUNTERS, OBJECT_COUNTERS
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
) -> None:
    """Of the rays `records` [n], inside `instance` [n]."""
    slots = int(frame["width"]) * int(frame["height"]) * ray.slots_per_pixel
    planes = slot_counts.reshape(len(SLOT_COUNTS), slots)
    slot = RECORD_TWINS[ray.name].ray_slot(records)
    planes[SLOT_COUNTS.index("any_hits")][slot] += np.uint32(1)
    nodes = planes[SLOT_COUNTS.index("nodes")][slot[accepted]].sum()
    for name, more in (("any_hits", len(slot)), ("hits", accepted.sum()), ("nodes_hit", nodes)):
        counters[COUNTERS.index(name)] += np.uint32(more)
    rows = counters[len(COUNTERS) :].reshape(-1, len(OBJECT_COUNTERS))
    np.add.at(rows[:, OBJECT_COUNTERS.index("any_hits")], 1 + instance, np.uint32(1))
