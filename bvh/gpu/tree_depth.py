"""How deep a radix tree is: every inner node walks to the root and counts its steps.

The walk reads parents that an earlier dispatch wrote and nothing else, so one dispatch does, of a
size that does not depend on the tree. Trees that a builder has finished are ordered by
`bvh.gpu.tree_order`; this one may still be too deep for that.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.hierarchy import needs_attempt
from bvh.gpu.tree_order_records import NO_PARENT, RIGHT_CHILD

U32 = NDArray[np.uint32]

MOST_STEPS = 128  # 63 bits of code and 30 of place make at most 93


def tree_depth(parameters: NDArray[Any], state: NDArray[Any], parents: U32, deepest: U32) -> None:
    """Twin of tree_depth.wgsl: `deepest[attempt]` becomes the most steps from any inner node to
    the root."""
    if not needs_attempt(parameters, deepest):
        return
    link = parents[: max(int(state["kept"][0]) - 1, 1)]
    steps = 0
    while len(link := link[link != NO_PARENT]) and steps < MOST_STEPS:
        link = parents[link & np.uint32(RIGHT_CHILD - 1)]
        steps += 1
    attempt = int(parameters["attempt"][0])
    deepest[attempt] = max(int(deepest[attempt]), steps)
