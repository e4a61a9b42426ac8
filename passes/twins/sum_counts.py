"""Twin of sum_counts.wgsl: the counts of several ray types, pixel by pixel."""

from typing import Any

from passes.slot_counts import SLOT_COUNTS, combine_counts, sum_slots
from passes.twins.wgsl_functions import U32


def sum_counts(
    frame: Any, slot_counts: U32, summed: U32, *, first: bool, slots_per_pixel: int
) -> None:
    """Writes `summed` [counts * pixels]."""
    pixels = int(frame["width"]) * int(frame["height"])
    size = pixels * slots_per_pixel
    for field, name in enumerate(SLOT_COUNTS):
        own = sum_slots(name, slot_counts[field * size : (field + 1) * size], slots_per_pixel)
        plane = summed[field * pixels : (field + 1) * pixels]
        plane[:] = own if first else combine_counts(name, [plane, own])
