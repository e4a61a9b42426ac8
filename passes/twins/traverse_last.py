"""Twin of traverse_last.wgsl: the round that tests inline."""

from typing import Any

import numpy as np

from bvh.rays import RayFlags
from passes.rays import RayType
from passes.twins.queue_push import RayQueue
from passes.twins.traverse_queue import alpha_test
from passes.twins.traverse_round import Round, store, trace_round
from passes.twins.wgsl_functions import U32


def traverse_last(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    results: Any,
    rejected: RayQueue,
    alpha: U32,
    texels: U32,
    *,
    ray: RayType,
    sort: bool = True,
    mask: int = 0xFF,
    flags: RayFlags = RayFlags.NONE,
    samples: list[int] | None = None,
) -> Round:
    """Writes the results of all rays that `rejected` names; `samples` as for `alpha_test`."""
    accept = alpha_test(alpha, texels, samples)
    found = trace_round(frame, bvh, queue, rejected, ray, sort, mask, flags, accept)
    store(results, ray, found, np.ones(len(found.rays), np.bool_))
    return found
