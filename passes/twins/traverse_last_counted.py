"""Twin of traverse_last_counted.wgsl; counts are the oracle's, as in traverse_queue_counted."""

from typing import Any

from bvh.rays import RayFlags
from passes.rays import RayType
from passes.twins.count_rounds import count_round
from passes.twins.queue_push import RayQueue
from passes.twins.traverse_last import traverse_last
from passes.twins.wgsl_functions import U32


def traverse_last_counted(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    results: Any,
    rejected: RayQueue,
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
    """As traverse_last; adds to `counters` and to the planes of `slot_counts`."""
    given = (frame, bvh, queue, results, rejected, alpha, texels)
    samples: list[int] = []
    found = traverse_last(*given, ray=ray, sort=sort, mask=mask, flags=flags, samples=samples)
    hit = found.result.hit
    count_round(frame, counters, slot_counts, ray, found, hit, first=False, samples=sum(samples))
