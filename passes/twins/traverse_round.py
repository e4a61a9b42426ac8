"""Twin of traverse_round.wgsl: a round of a ray queue through the oracle, in the kernel's order."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bvh.oracle import Accept, Resume, Trace, trace
from bvh.rays import RayFlags
from passes.candidates import CANDIDATE
from passes.rays import RayType
from passes.twins.hits import NAMES, hits_of
from passes.twins.queue_push import RayQueue
from passes.twins.rays import RECORD_TWINS
from passes.twins.traverse_queue import FAILED_STACK
from passes.twins.wgsl_functions import U32


@dataclass(frozen=True, slots=True)
class Round:
    """What a round traced: rays by their queue indices, [n], and what came of them."""

    rays: Any
    records: Any
    result: Trace


def traverse_round(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    results: Any,
    rejected: RayQueue,
    push_queue: RayQueue,
    *,
    ray: RayType,
    sort: bool = True,
    mask: int = 0xFF,
    flags: RayFlags = RayFlags.NONE,
    resumed: bool = False,
) -> Round:
    """Writes the results of rays that wait for nothing, and pushes the others' candidates."""
    behind = rejected if resumed else None
    found = trace_round(frame, bvh, queue, behind, ray, sort, mask, flags, None)
    result, waits = found.result, found.result.waits & found.result.hit
    store(results, ray, found, ~waits)
    candidates = np.zeros(int(waits.sum()), CANDIDATE.dtype)
    candidates["ray"] = found.rays[waits]
    for name in NAMES:
        candidates[name] = getattr(result, name)[waits]
    pointer = result.pointer[waits]
    candidates["place"] = pointer >> np.uint32(3) << np.uint32(2) | pointer & np.uint32(3)
    push_queue.push(candidates)
    return found


def trace_round(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    rejected: RayQueue | None,
    ray: RayType,
    sort: bool,
    mask: int,
    flags: RayFlags,
    accept: Accept | None,
) -> Round:
    """Rays of the queue, or those that `rejected` names, from there on; without `accept` what asks
    waits."""
    rays = np.arange(queue.count)
    resume = None
    if rejected is not None:
        behind = rejected.records[: rejected.count]
        rays = behind["ray"].astype(np.int64)
        place = behind["place"]
        pointer = place >> np.uint32(2) << np.uint32(3) | place & np.uint32(3)
        resume = Resume(behind["t"].copy(), pointer, behind["instance"].copy())
    records = queue.records[rays]
    result = trace(
        bvh.reshape(-1),
        RECORD_TWINS[ray.name].load_ray(frame, records),
        any_hit=ray.any_hit,
        accept=accept,
        sort=sort,
        mask=mask,
        flags=flags,
        kernel_order=True,
        defer=accept is None,
        resume=resume,
    )
    if result.overflows.any():
        queue.header["failed"] = int(queue.header["failed"]) | int(FAILED_STACK)
    return Round(rays, records, result)


def store(results: Any, ray: RayType, found: Round, rows: Any) -> None:
    twin = RECORD_TWINS[ray.name]
    twin.store_result(results, found.records[rows], hits_of(found.result, rows), found.rays[rows])
