"""Twin of gather_rays.wgsl: what waits in a queue, copied in the order of a sort."""

from typing import Any

from passes.twins.queue_push import RayQueue
from passes.twins.wgsl_functions import U32


def gather_rays(frame: Any, unsorted: RayQueue, order: U32, queue: RayQueue) -> None:
    """Writes the records of `queue` that no pass has drained, and the header but for what later
    passes add."""
    first, count = int(unsorted.header["drained"]), unsorted.waiting
    if not count:
        return
    queue.records[first : first + count] = unsorted.records[order[:count]]
    for field in ("count", "capacity", "dropped", "replaced", "lost", "drained"):
        queue.header[field] = unsorted.header[field]
