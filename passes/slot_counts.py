"""What counted frames keep for every ray: a plane of counts for each name, one u32 a slot.

A plane's place in SLOT_COUNTS is its place in a ray type's `slot_counts` buffer, [count][slot]:
each plane is contiguous. A slot is a ray's place in the picture, pixel * slots_per_pixel + kind.
Counts mean what they mean in bvh/counters.py; over the slots they add up to those totals, and
`stack_max` is their maximum. Every ray visits a node, so 0 nodes: no ray was sent.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.counters import COUNTERS

SLOT_COUNTS = ("nodes", "box_tests", "triangle_tests", "any_hits", "stack_max")
# Name -> what a person calls it, and the unit of a value.
COUNT_LABELS = {
    "nodes": ("nodes", "nodes"),
    "box_tests": ("box tests", "tests"),
    "triangle_tests": ("triangle tests", "tests"),
    "any_hits": ("any-hit calls", "calls"),
    "stack_max": ("stack", "entries"),
}


def plane_bytes(slots: int) -> int:
    return 4 * slots


def buffer_bytes(slots: int) -> int:
    """All planes of a ray type that has so many slots."""
    return len(SLOT_COUNTS) * plane_bytes(slots)


def sum_slots(name: str, plane: NDArray[np.uint32], slots_per_pixel: int) -> NDArray[np.uint32]:
    """[pixels] from a plane [slots]: the sum over a pixel's slots, of `stack_max` the maximum."""
    return combine_counts(name, list(plane.reshape(-1, slots_per_pixel).T))


def combine_counts(name: str, planes: Sequence[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """The sum of planes, of `stack_max` their maximum."""
    combine: Any = np.maximum if name == "stack_max" else np.add
    return np.asarray(combine.reduce(planes), np.uint32)


def wgsl() -> str:
    """Planes as `SLOT_<NAME>`; SLOT_COUNTERS holds each one's index in bvh.counters.COUNTERS."""
    lines = [f"const SLOT_{name.upper()}: u32 = {i}u;" for i, name in enumerate(SLOT_COUNTS)]
    indices = ", ".join(f"{COUNTERS.index(name)}u" for name in SLOT_COUNTS)
    count = len(SLOT_COUNTS)
    lines += [f"const SLOT_FIELDS: u32 = {count}u;"]
    lines += [f"const SLOT_COUNTERS: array<u32, {count}> = array<u32, {count}>({indices});"]
    return "\n".join(lines) + "\n"
