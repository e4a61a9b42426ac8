"""Twin of test_candidates.wgsl: the alpha test of what waits for it."""

from typing import Any

from passes.rays import RayType
from passes.twins.accept_alpha import accept_candidate
from passes.twins.hits import hits_in
from passes.twins.queue_push import RayQueue
from passes.twins.rays import RECORD_TWINS
from passes.twins.wgsl_functions import U32, Flags


def test_candidates(
    frame: Any,
    queue: RayQueue,
    results: Any,
    alpha: U32,
    texels: U32,
    candidates: RayQueue,
    push_queue: RayQueue,
    *,
    ray: RayType,
) -> Flags:
    """Writes the results of accepted candidates and pushes the others; which are accepted."""
    tested = candidates.records[: candidates.count]
    names = ("object", "primitive", "u", "v")
    accepted = accept_candidate(alpha, texels, *(tested[name] for name in names))
    hits = tested[accepted]
    records = queue.records[hits["ray"]]
    RECORD_TWINS[ray.name].store_result(results, records, hits_in(hits), hits["ray"])
    push_queue.push(tested[~accepted])
    return accepted
