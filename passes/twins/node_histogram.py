"""Twin of node_histogram.wgsl."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]


def node_histogram(frame: Any, slot_counts: U32, histogram: U32, *, slots_per_pixel: int) -> None:
    """Adds to `histogram`, by nodes, the rays of all slots that visited any."""
    slots = int(frame["width"]) * int(frame["height"]) * slots_per_pixel
    nodes = slot_counts[:slots]
    sent = np.minimum(nodes[nodes > 0], len(histogram) - 1)
    histogram += np.bincount(sent, minlength=len(histogram)).astype(np.uint32)
