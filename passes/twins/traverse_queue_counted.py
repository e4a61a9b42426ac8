"""Twin of traverse_queue_counted.wgsl: a ray queue through the CPU oracle, with its counters.

The counts are those of the oracle's own walk: it sorts all four children where the kernel finds
only the nearest, so that `nodes` and the tests are close to the kernel's, not equal, and it
enters a scene's only instance through the TLAS, which the kernel skips. Rays, hits and misses are
equal. The oracle does not tell objects apart: of their rows only `hits` is counted.
"""

from typing import Any

from bvh.counters import COUNTERS, CounterTable
from bvh.rays import RayFlags
from passes.rays import RayType
from passes.slot_counts import SLOT_COUNTS
from passes.twins.queue_push import RayQueue
from passes.twins.rays import RECORD_TWINS
from passes.twins.traverse_queue import trace_queue
from passes.twins.wgsl_functions import U32


def traverse_queue_counted(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    results: Any,
    alpha: U32,
    texels: U32,
    counters: U32,
    slot_counts: U32,
    *,
    ray: RayType,
    sort: bool = True,
    mask: int = 0xFF,
    flags: RayFlags = RayFlags.NONE,
) -> None:
    """Adds to `counters` and writes `slot_counts`, planes by slot."""
    samples: list[int] = []
    given = (frame, bvh, queue, results, alpha, texels, ray, sort, mask, flags)
    result = trace_queue(*given, samples)
    spent = result.counters
    totals = {name: getattr(spent, name).sum() for name in COUNTERS if hasattr(spent, name)}
    totals["rays"] = len(result.t)
    totals["hits"] = result.hit.sum()
    totals["alpha_samples"] = sum(samples)
    totals["overflows"] = (result.overflows > 0).sum()
    totals["nodes_hit"] = spent.nodes[result.hit].sum()
    for index, name in enumerate(COUNTERS):
        if name == "stack_max":
            counters[index] = max(counters[index], spent.stack_max.max(initial=0))
        else:
            counters[index] = int(counters[index]) + int(totals.get(name, 0))
    CounterTable.of(counters).charge("hits", result.instance[result.hit])
    slots = int(frame["width"]) * int(frame["height"]) * ray.slots_per_pixel
    slot = RECORD_TWINS[ray.name].ray_slot(queue.records[: queue.count])
    for index, name in enumerate(SLOT_COUNTS):
        slot_counts[index * slots + slot] = getattr(spent, name)
