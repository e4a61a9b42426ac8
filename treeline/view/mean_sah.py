"""The mean SAH of a BLAS's box nodes, read a part at a time.

Of a node alone, with Ct = Ci = 1: 1 + the half areas of its slots' boxes over its own. What a ray
that enters the node pays for it and for entering what is below; the mean says how well slots fit
anywhere in the tree, where the root's SAH weighs the large boxes at the top.
"""

import numpy as np
from numpy.typing import NDArray

from bvh.decode import node_boxes
from bvh.layout import (
    INVALID_POINTER,
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    ROOT_POINTER,
    UNIT_BYTES,
    unpack_pointer,
)
from bvh.sah import INTERSECTION_COST, TRAVERSAL_COST
from bvh.tree import half_area
from treeline.view.structure_tree import StructureTree

STEP_NODES = 2_000  # about a millisecond


class MeanSah:
    """`value` is None until `step` has read every node; NaN where no node has an area."""

    def __init__(self, tree: StructureTree, container: int) -> None:
        header = tree.header(container)
        self._units = tree.units[tree.base(container) // UNIT_BYTES :]
        self._left = header.nodes_fp16 + header.nodes_fp32  # more would be a circle of pointers
        pointer = np.array([ROOT_POINTER], np.uint32)
        self._open: list[tuple[NDArray[np.uint32], NDArray[np.float64]]] = [
            (pointer, half_area(header.bounds[None]))
        ]
        self._sum = 0.0
        self._count = 0
        self.value: float | None = None

    def step(self) -> None:
        """Reads up to STEP_NODES nodes more."""
        if self.value is not None:
            return
        pointer, area = self._open.pop()
        if len(pointer) > STEP_NODES:
            self._open.append((pointer[STEP_NODES:], area[STEP_NODES:]))
            pointer, area = pointer[:STEP_NODES], area[:STEP_NODES]
        self._left -= len(pointer)
        offset, kind = unpack_pointer(pointer)
        children, boxes = node_boxes(self._units, offset // UNIT_BYTES, kind == NODE_BOX_FP16)
        used = children != INVALID_POINTER
        inside = np.where(used, half_area(np.where(used[..., None, None], boxes, 0)), 0.0)
        sound = area > 0
        cost = TRAVERSAL_COST + INTERSECTION_COST * inside.sum(axis=1)[sound] / area[sound]
        self._sum += float(cost.sum())
        self._count += len(cost)
        types = children & np.uint32(7)
        inner = used & ((types == NODE_BOX_FP16) | (types == NODE_BOX_FP32))
        if inner.any():
            self._open.append((children[inner], inside[inner]))
        if not self._open or self._left <= 0:
            self.value = self._sum / self._count if self._count else float("nan")
