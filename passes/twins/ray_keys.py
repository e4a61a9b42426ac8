"""Twin of ray_keys.wgsl: octant and origin of every ray that waits, as a sort key."""

from typing import Any

import numpy as np

from passes.rays import RayType
from passes.twins.queue_push import RayQueue
from passes.twins.rays import RECORD_TWINS
from passes.twins.wgsl_functions import U32


@np.errstate(all="ignore")
def ray_keys(
    frame: Any,
    bvh: U32,
    queue: RayQueue,
    keys: U32,
    order: U32,
    live: U32,
    *,
    ray: RayType,
    axis_bits: int,
) -> None:
    """Writes the first `live[0]` of `keys` and `order`, and `live` itself."""
    first, count = int(queue.header["drained"]), queue.waiting
    live[0] = count
    order[:count] = np.arange(first, first + count)
    rays = RECORD_TWINS[ray.name].load_ray(frame, queue.records[first : first + count])
    box = bvh.reshape(-1)[12:18].view(np.float32)
    low, high = box[:3], box[3:]
    place = (rays["origin"] - low) / np.maximum(high - low, np.float32(1.0e-20))
    cells = np.float32(1 << axis_bits)
    cell = np.clip(place * cells, 0.0, cells - 1).astype(np.uint32)
    key = np.zeros(count, np.uint32)
    for bits in (rays["direction"] < 0.0, *(cell >> b & 1 for b in reversed(range(axis_bits)))):
        for axis in range(3):
            key = key << np.uint32(1) | bits[:, axis].astype(np.uint32)
    keys[:count] = key
