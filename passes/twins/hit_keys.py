"""Twin of hit_keys.wgsl: the material of every hit as a sort key."""

from typing import Any

import numpy as np

from bvh.rays import MISS_ID
from passes.twins.queue_push import RayQueue
from passes.twins.surface import OBJECT_VEC4S
from passes.twins.wgsl_functions import U32

MISSED = 0xFFFF


def hit_keys(
    frame: Any, tables: U32, queue: RayQueue, results: Any, keys: U32, order: U32, live: U32
) -> None:
    """Writes the first `live[0]` of `keys` and `order`, and `live` itself."""
    count = queue.count
    live[0] = count
    order[:count] = np.arange(count)
    found = results["object"][:count]
    hit = found != MISS_ID
    keys[:count] = MISSED
    keys[:count][hit] = tables[found[hit].astype(np.int64) * OBJECT_VEC4S + 6, 2]
