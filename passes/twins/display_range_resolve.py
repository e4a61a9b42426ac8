"""Twin of display_range_resolve.wgsl: the range of what was gathered."""

from typing import Any

import numpy as np

from passes.display_records import BIN_BITS


def bin_end(bins: int) -> int:
    """The largest value of a bin."""
    if bins < 1 << BIN_BITS:
        return bins
    octave = (bins >> BIN_BITS) - 1
    first = (bins & ((1 << BIN_BITS) - 1)) + (1 << BIN_BITS)
    return (first << octave) + (1 << octave) - 1


def display_range_resolve(display: Any, display_range: Any, *, depth: bool = False) -> None:
    values = int(display_range["values"])
    if depth:
        if not values:
            return
        ends = np.array([~display_range["least_inverted"], display_range["most"]], np.uint32)
        display_range["low"], display_range["high"] = ends.view(np.float32)
        return
    wanted = values - values // 1000
    last = int(np.searchsorted(np.cumsum(display_range["histogram"], dtype=np.int64), wanted))
    most = int(display_range["most"])
    high = np.float32(max(1, min(bin_end(last), most) if last else most))
    display_range["high"] = high
    display_range["low"] = -high if display["difference"] else 0.0
