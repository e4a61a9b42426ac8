"""Twin of display_range_counts.wgsl: how many pixels have which count. `display_range` is one
DISPLAY_RANGE record, zero at first, changed in place.
"""

from typing import Any

import numpy as np

from passes.display_records import BIN_BITS, BINS
from passes.twins.display_count import pixel_counts
from passes.twins.wgsl_functions import U32


def bin_of(values: Any) -> Any:
    """int64 [n] below 2^32: the leading bit says which octave, the next BIN_BITS which bin."""
    values = np.asarray(values, np.int64)
    octave = np.maximum(np.frexp(values.astype(np.float64))[1] - 1 - BIN_BITS, 0)
    high = ((octave + 1) << BIN_BITS) + ((values >> octave) & ((1 << BIN_BITS) - 1))
    return np.where(values < (1 << BIN_BITS), values, high)


def display_range_counts(
    frame: Any, display: Any, display_range: Any, slot_counts: U32, baseline: U32
) -> None:
    pixels = np.arange(int(frame["width"]) * int(frame["height"]))
    counts = pixel_counts(frame, display, slot_counts, baseline, pixels)
    values = np.abs(counts.value[counts.sent])
    display_range["histogram"] += np.bincount(bin_of(values), minlength=BINS).astype(np.uint32)
    display_range["most"] = values.max(initial=0)
    display_range["values"] = len(values)
