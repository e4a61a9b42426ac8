"""Rays and hits in another order before the pass that drains them: names and sizes of what that
takes. The passes are in passes/sort_passes.py.

Rays (option `ray_sort`, of all types or of the one that `sorted_rays` names): the pass that makes
them fills a queue of its own; a key for each is the octant of its direction, then the Morton code
of its origin; the GPU's radix sort orders their indices by it, and a copy in that order is the
queue that every later pass knows. Lanes that are traced together then start close to each other and
go the same way. A copy costs 20 to 32 bytes a ray, once; reading through the sorted indices instead
would scatter every later pass's reads.

Hits (option `hit_sort`): the key is the material. Shading reads through the sorted indices, since
it reads a record once, and rays keep their order for all others.

Sorts are stable: rays of equal keys stay as neighbouring pixels sent them. What a ray hits does not
depend on its place in the queue.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.primitives.radix_sort import TOTALS_BYTES, radix_sort
from passes.frame_options import EVERY_TYPE, FrameOptions
from passes.queue import QUEUE_HEADER
from passes.rays import RayType

U32 = NDArray[np.uint32]

# Bits an axis of the origin's Morton code, behind the three of the octant.
AXIS_BITS = {"coarse": 4, "fine": 9}
MATERIAL_BITS = 16


def sorts_rays(options: FrameOptions, ray: RayType) -> bool:
    return options.ray_sort != "none" and options.sorted_rays in (EVERY_TYPE, ray.family)


def sorts_hits(options: FrameOptions, ray: RayType) -> bool:
    """Of a type whose hits are shaded."""
    return options.hit_sort != "none" and not ray.any_hit


def filled_queue(options: FrameOptions, ray: RayType) -> str:
    """The queue that rays of the type are pushed onto; drained is always `ray.queue`."""
    return f"{ray.name}_unsorted" if sorts_rays(options, ray) else ray.queue


def key_bits(axis_bits: int) -> int:
    """Of a ray's key, rounded up to what the sort takes: pairs of digits of eight bits."""
    return -(-(3 + 3 * axis_bits) // 16) * 16


def hits_of(ray: RayType) -> str:
    """What the buffers of a type's sorted hits are named after."""
    return f"{ray.name}_hit"


def sorted_names(what: str) -> dict[str, str]:
    """The buffers that sort `what` (a ray type's name, or `hits_of` it), by what shaders call
    them."""
    return {name: f"{what}_{name}" for name in ("keys", "order", "live")}


def sort_buffers(options: FrameOptions, ray: RayType, capacity: int) -> dict[str, int]:
    """Bytes of the buffers that sorting adds to a type's queue of `capacity` records."""
    sizes: dict[str, int] = {}
    if sorts_rays(options, ray):
        sizes[filled_queue(options, ray)] = QUEUE_HEADER.size + ray.record.size * capacity
        sizes |= _sorted(ray.name, capacity)
    if sorts_hits(options, ray):
        sizes |= _sorted(hits_of(ray), capacity)
    return sizes


def _sorted(name: str, capacity: int) -> dict[str, int]:
    return {
        f"{name}_keys": 4 * capacity,
        f"{name}_order": 4 * capacity,
        f"{name}_live": 4,
        f"{name}_totals": TOTALS_BYTES,
    }


def cleared_bytes(options: FrameOptions, ray: RayType) -> dict[str, int]:
    """Bytes at the start of those buffers that are zero when a frame begins: the queue's header,
    and counts: those of an empty queue, which no pass writes, and those of a sort that a frame left
    half done."""
    return {
        name: size
        for name, size in sort_buffers(options, ray, 0).items()
        if not name.endswith(("_keys", "_order"))
    }


def sort_in_place(keys: U32, order: U32, live: U32) -> None:
    """Twin of the radix pass: the first `live[0]` keys and indices."""
    count: Any = slice(int(live[0]))
    keys[count], order[count] = radix_sort(keys[count], order[count])
