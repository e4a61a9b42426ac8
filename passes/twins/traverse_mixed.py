"""Twin of traverse_mixed.wgsl: parts of two ray queues through the CPU oracle."""

from collections.abc import Mapping
from typing import Any

from passes.twins.queue_push import RayQueue
from passes.twins.traverse_queue import trace_queue
from passes.twins.wgsl_functions import U32


def traverse_mixed(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    results: Any,
    other_queue: RayQueue,
    other_results: Any,
    alpha: U32,
    texels: U32,
    spans: U32,
    *,
    first: Mapping[str, Any],
    other: Mapping[str, Any],
) -> None:
    """Writes results of both; `first` and `other` are what `trace_queue` takes of a ray type,
    `spans` the words of a MIXED_ARGUMENTS record."""
    begins = spans[4:].tolist()
    for source, found, settings, span in (
        (queue, results, first, begins[:2]),
        (other_queue, other_results, other, begins[2:]),
    ):
        trace_queue(frame, bvh, source, found, alpha, texels, **settings, span=tuple(span))
