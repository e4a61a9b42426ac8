"""Twin of traverse_round_counted.wgsl; counts are the oracle's, as in traverse_queue_counted."""

from typing import Any

from bvh.rays import RayFlags
from passes.rays import RayType
from passes.twins.count_rounds import count_round
from passes.twins.queue_push import RayQueue
from passes.twins.traverse_round import traverse_round
from passes.twins.wgsl_functions import U32


def traverse_round_counted(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    results: Any,
    rejected: RayQueue,
    push_queue: RayQueue,
    counters: U32,
    slot_counts: U32,
    *,
    ray: RayType,
    sort: bool = True,
    mask: int = 0xFF,
    flags: RayFlags = RayFlags.NONE,
    resumed: bool = False,
) -> None:
    """As traverse_round; adds to `counters` and to the planes of `slot_counts`."""
    found = traverse_round(
        frame,
        bvh,
        queue,
        results,
        rejected,
        push_queue,
        ray=ray,
        sort=sort,
        mask=mask,
        flags=flags,
        resumed=resumed,
    )
    hit = found.result.hit & ~found.result.waits
    count_round(frame, counters, slot_counts, ray, found, hit, first=not resumed)
