"""Twin of display_count.wgsl: a pixel's count, or its difference from the baseline's."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.slot_counts import SLOT_COUNTS
from passes.twins.wgsl_functions import U32, Flags


@dataclass(frozen=True, slots=True)
class PixelCounts:
    """By lane: whether a ray was sent (in the frame or the baseline), and the count or its
    difference."""

    sent: Flags
    value: Any


def pixel_counts(
    frame: Any, display: Any, slot_counts: U32, baseline: U32, pixels: Any
) -> PixelCounts:
    """At pixel indices [n]."""
    kinds, field = int(display["slots_per_pixel"]), int(display["field"])
    count = int(frame["width"]) * int(frame["height"])
    planes = slot_counts[: len(SLOT_COUNTS) * count * kinds].reshape(-1, count, kinds)
    was = baseline[: count * kinds].reshape(count, kinds)[pixels] * (display["difference"] > 0)
    here = planes[field, :][pixels]
    combine = np.max if SLOT_COUNTS[field] == "stack_max" else np.sum
    now, then = (combine(v.astype(np.int64), axis=-1) for v in (here, was))
    nodes = planes[SLOT_COUNTS.index("nodes")][pixels].sum(-1, dtype=np.int64)
    return PixelCounts(nodes + then > 0, now - then)
