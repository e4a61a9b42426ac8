"""Twin of test_candidates_counted.wgsl."""

from typing import Any

from passes.rays import RayType
from passes.twins.accept_alpha import alpha_samples
from passes.twins.count_tests import count_tests
from passes.twins.queue_push import RayQueue
from passes.twins.test_candidates import test_candidates
from passes.twins.wgsl_functions import U32


def test_candidates_counted(
    frame: Any,
    queue: RayQueue,
    results: Any,
    alpha: U32,
    texels: U32,
    candidates: RayQueue,
    push_queue: RayQueue,
    counters: U32,
    slot_counts: U32,
    *,
    ray: RayType,
) -> None:
    """As test_candidates; adds to `counters`, objects' rows too, and a plane of `slot_counts`."""
    given = (frame, queue, results, alpha, texels, candidates, push_queue)
    accepted = test_candidates(*given, ray=ray)
    tested = candidates.records[: candidates.count]
    records = queue.records[tested["ray"]]
    sampled = alpha_samples(alpha, tested["object"], tested["primitive"])
    instance = tested["instance"]
    count_tests(frame, counters, slot_counts, ray, records, instance, accepted, sampled)
