"""The boxes of a container by level: level 0 is its root's own box, level k the boxes that nodes of
level k - 1 hold in their slots. One level at a time, as somebody looks at it.
"""

from dataclasses import dataclass

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
from treeline.view.structure_tree import StructureTree

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

# Nodes a step: some milliseconds of NumPy, so that a window can go on between steps.
STEP_NODES = 30_000


@dataclass(frozen=True, slots=True)
class Level:
    """`boxes [n, 2, 3]` in the container's space; `types` [n] are node types of `bvh.layout`."""

    boxes: F32
    types: U8


class BoxLevels:
    """`levels` grows by `step`; `complete` once there is none below."""

    def __init__(self, tree: StructureTree, container: int) -> None:
        header = tree.header(container)
        self._units = tree.units[tree.base(container) // UNIT_BYTES :]
        self._limit = header.depth + 1
        self.levels: list[Level] = []
        self.complete = False
        root = np.array([ROOT_POINTER], np.uint32)
        self._open: list[tuple[I64, NDArray[np.bool_]]] = []  # nodes whose slots are the next level
        self._found: list[Level] = []
        if np.isfinite(header.bounds).all():
            self._found.append(Level(header.bounds[None], np.array([ROOT_POINTER & 7], np.uint8)))
        self._next: list[tuple[I64, NDArray[np.bool_]]] = [_nodes(root)]
        self._close_level()

    def step(self) -> None:
        """Reads up to STEP_NODES nodes more; a level is in `levels` once all of it was read."""
        if self.complete:
            return
        at, half = self._open.pop()
        if len(at) > STEP_NODES:
            self._open.append((at[STEP_NODES:], half[STEP_NODES:]))
            at, half = at[:STEP_NODES], half[:STEP_NODES]
        pointers, boxes = node_boxes(self._units, at, half)
        used = pointers != INVALID_POINTER
        types = (pointers[used] & 7).astype(np.uint8)
        self._found.append(Level(boxes[used], types))
        inner = (types == NODE_BOX_FP16) | (types == NODE_BOX_FP32)
        self._next.append(_nodes(pointers[used][inner]))
        if not self._open:
            self._close_level()

    def _close_level(self) -> None:
        found, self._found = self._found, []
        if sum(len(part.types) for part in found):
            boxes = np.concatenate([part.boxes for part in found])
            self.levels.append(Level(boxes, np.concatenate([part.types for part in found])))
        self._open = [part for part in self._next if len(part[0])]
        self._next = []
        # A level beyond the header's depth would be a circle of pointers.
        self.complete = not self._open or len(self.levels) > self._limit


def _nodes(pointers: NDArray[np.uint32]) -> tuple[I64, NDArray[np.bool_]]:
    """(units, whether FP16) of box nodes."""
    offset, kind = unpack_pointer(pointers)
    return offset // UNIT_BYTES, kind == NODE_BOX_FP16
