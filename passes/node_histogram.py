"""How many rays visited how many box nodes, and percentiles out of that: as exact as out of every
ray's count, at 400 kB whatever the picture's size."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Bin n counts the rays with n nodes. A ray takes at most MAX_STEPS + 1 steps
# (bvh/shaders/traverse.wgsl), a node each.
BINS = 100_002
COMMON = 4096
LANES = 128
SLOTS_A_GROUP = 4096


def groups(slots: int) -> int:
    """Workgroups of node_histogram.wgsl for so many slots."""
    return -(-slots // SLOTS_A_GROUP)


def wgsl() -> str:
    return (
        f"const HISTOGRAM_LANES: u32 = {LANES}u;\nconst HISTOGRAM_SLOTS: u32 = {SLOTS_A_GROUP}u;\n"
    )


def octaves(histogram: NDArray[np.uint32]) -> tuple[int, ...]:
    """Rays whose count is 0, 1, 2 to 3, 4 to 7 and so on, up to the largest there is."""
    rare = int(histogram[COMMON:].max(initial=0))
    used = np.flatnonzero(histogram if rare else histogram[:COMMON])
    sums = np.bincount(np.frexp(used.astype(np.float64))[1], weights=histogram[used])
    return tuple(int(count) for count in sums)


def percentiles(histogram: NDArray[np.uint32], wanted: Sequence[float]) -> list[float]:
    """Of the counted values, with the linear interpolation of `np.percentile`; zeros where nothing
    was counted."""
    # Few rays have more than COMMON nodes, and that there are none is found fastest by a maximum.
    rare = int(histogram[COMMON:].max(initial=0))
    used = np.flatnonzero(histogram if rare else histogram[:COMMON])
    if not len(used):
        return [0.0] * len(wanted)
    ends = np.cumsum(histogram[used], dtype=np.int64)
    found = []
    for percent in wanted:
        place = (int(ends[-1]) - 1) * (percent / 100)
        below = int(place)
        low, high = (
            float(used[np.searchsorted(ends, min(i, ends[-1] - 1), "right")])
            for i in (below, below + 1)
        )
        part = place - below
        # Both forms, as NumPy does: the result never leaves [low, high].
        step = high - low
        found.append(low + step * part if part < 0.5 else high - step * (1 - part))
    return found
