"""The bytes of each node type as named fields, with the ledger row that each rests on.

A structured dtype a type: viewing words as one and back loses nothing, so a foreign node's bytes
round-trip, bits that no row explains included (fields named `unread_*`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.contract.facts.row import Label
from bvh.contract.ledger import BY_ID
from bvh.layout import (
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_INSTANCE,
    NODE_PROCEDURAL,
    NODE_TRIANGLE_0,
    NODE_TRIANGLE_1,
    NODE_TRIANGLE_2,
    NODE_TRIANGLE_3,
)


@dataclass(frozen=True, slots=True)
class NodeField:
    """`shape` elements of the little-endian type `base` at `byte` of the node."""

    name: str
    byte: int
    base: str
    shape: tuple[int, ...]
    row: str  # id in the ledger

    @property
    def label(self) -> Label:
        return BY_ID[self.row].label


_CHILDREN = ("children", 0, "<u4", (4,))
_BLOCK = (
    NodeField("vertices", 0, "<f4", (4, 3), "triangle.vertices"),
    NodeField("geometry", 48, "<u4", (), "triangle.tail"),
    NodeField("primitives", 52, "<u4", (2,), "triangle.tail"),
    NodeField("flags", 60, "u1", (4,), "triangle.flag_byte"),
)
_FAN = (
    NodeField("vertices", 0, "<f4", (5, 3), "triangle.vertices"),
    NodeField("flags", 60, "u1", (4,), "triangle.flag_byte"),
)
FIELDS: dict[int, tuple[NodeField, ...]] = {
    NODE_TRIANGLE_0: _BLOCK,
    NODE_TRIANGLE_1: _BLOCK,
    NODE_TRIANGLE_2: _FAN,  # types 2 and 3 need the fifth vertex, where the ids would be
    NODE_TRIANGLE_3: _FAN,
    NODE_BOX_FP16: (
        NodeField(*_CHILDREN, "box.fp16"),
        NodeField("bounds", 16, "<f2", (4, 2, 3), "box.fp16"),
    ),
    NODE_BOX_FP32: (
        NodeField(*_CHILDREN, "box.fp32"),
        NodeField("bounds", 16, "<f4", (4, 2, 3), "box.fp32"),
        NodeField("unread_tail", 112, "<u4", (4,), "box.tail"),
    ),
    NODE_INSTANCE: (NodeField("unread_words", 0, "<u4", (32,), "instance.console"),),
    NODE_PROCEDURAL: (NodeField("unread_words", 0, "<u4", (16,), "pointer.kinds"),),
}


def dtype_of(kind: int) -> np.dtype[Any]:
    """The structured dtype of a node type."""
    fields = FIELDS[kind]
    return np.dtype(
        {
            "names": [field.name for field in fields],
            "formats": [(field.base, field.shape) for field in fields],
            "offsets": [field.byte for field in fields],
            "itemsize": NODE_BYTES[kind],
        }
    )


def decode(words: NDArray[np.uint32], kind: int) -> NDArray[Any]:
    """Nodes `[n, >= words of the type]` as a structured array `[n]`."""
    count = NODE_BYTES[kind] // 4
    rows = np.ascontiguousarray(words[:, :count], "<u4")
    return rows.view(dtype_of(kind)).reshape(-1)


def encode(nodes: NDArray[Any]) -> NDArray[np.uint32]:
    """The words `[n, k]` of a structured array, bit for bit."""
    return np.ascontiguousarray(nodes).view("<u4").reshape(len(nodes), -1).astype(np.uint32)
