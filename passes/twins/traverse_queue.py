"""Twin of traverse_queue.wgsl: a ray queue through the CPU oracle.

The oracle owns the truth about hits (bvh.oracle); what the ray type reads and keeps is in
passes.twins.rays. Triangle weights and t agree with the kernel's to a few ULPs, which of two
triangles at equal t is hit may differ.
"""

from functools import partial
from typing import Any

import numpy as np

from bvh.oracle import Accept, Trace, trace
from bvh.rays import RayFlags
from passes.rays import RayType
from passes.twins.accept_alpha import accept_candidate, alpha_samples
from passes.twins.queue_push import RayQueue
from passes.twins.rays import RECORD_TWINS
from passes.twins.wgsl_functions import F32, U32, Flags

FAILED_STACK = np.uint32(1)  # bit of bvh.gpu.trace_rays.FAILURES


def alpha_test(alpha: U32, texels: U32, samples: list[int] | None = None) -> Accept:
    """`samples` gets, with every call, how many textures it sampled."""
    if samples is None:
        return partial(accept_candidate, alpha, texels)

    def accept(object: U32, primitive: U32, u: F32, v: F32) -> Flags:
        samples.append(int(alpha_samples(alpha, object, primitive).sum()))
        return accept_candidate(alpha, texels, object, primitive, u, v)

    return accept


def traverse_queue(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    results: Any,
    alpha: U32,
    texels: U32,
    *,
    ray: RayType,
    sort: bool = True,
    mask: int = 0xFF,
    flags: RayFlags = RayFlags.NONE,
) -> None:
    """Writes `results`: HIT records by queue index (reflection) or words by slot (shadow)."""
    trace_queue(frame, bvh, queue, results, alpha, texels, ray, sort, mask, flags)


def trace_queue(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    results: Any,
    alpha: U32,
    texels: U32,
    ray: RayType,
    sort: bool,
    mask: int,
    flags: RayFlags,
    samples: list[int] | None = None,
    span: tuple[int, int] | None = None,
) -> Trace:
    """`span`: begin and end of the rays in the queue; None: what no pass has drained."""
    twin = RECORD_TWINS[ray.name]
    begin, end = span or (int(queue.header["drained"]), queue.count)
    records = queue.records[begin:end]
    result = trace(
        bvh.reshape(-1),
        twin.load_ray(frame, records),
        any_hit=ray.any_hit,
        accept=alpha_test(alpha, texels, samples),
        sort=sort,
        mask=mask,
        flags=flags,
    )
    twin.store_result(results, records, result, np.arange(begin, end))
    if result.overflows.any():
        queue.header["failed"] = int(queue.header["failed"]) | int(FAILED_STACK)
    return result
