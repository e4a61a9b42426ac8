"""Where everything of a valid container lies, and what each of its boxes has to enclose."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.decode import (
    TriangleRows,
    container_nodes,
    decode_triangles,
    leaf_records,
    node_boxes,
)
from bvh.fan_blocks import find_fan_rows, unpack_fan_table
from bvh.header import Header, unpack_header

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ContainerMap:
    """One container's records. Places are word indices in the scene buffer; `exact[n, s]` is what
    the box of slot s of node n has to enclose (min +inf where the slot is empty)."""

    base: int  # word of its byte 0
    header: Header
    node_word: Index  # [n]
    node_half: NDArray[np.bool_]  # [n]
    exact: F32  # [n, 4, 2, 3]
    leaf_word: Index  # [leaves]
    leaf_parent: Index  # [leaves] node whose slot holds it
    leaf_slot: Index  # [leaves]
    rows: TriangleRows | None  # of a BLAS: its triangles
    fan_row: Index  # [leaves] where the ids of a fan are, -1 for other leaves

    def count(self, block: int) -> int:
        """Triangles of a block."""
        assert self.rows is not None
        return int(np.diff(np.searchsorted(self.rows.block, [block, block + 1]))[0])

    def node_pointer(self, node: int) -> int:
        """The pointer that leads to a node, relative to the container."""
        kind = layout.NODE_BOX_FP16 if self.node_half[node] else layout.NODE_BOX_FP32
        return (int(self.node_word[node]) - self.base) >> 1 | kind


def map_container(words: U32, base: int) -> ContainerMap:
    """Where everything of a valid container lies, and what its boxes have to enclose."""
    header = unpack_header(words[base:])
    own = words[base : base + header.size_units * layout.UNIT_WORDS]
    unit, half = container_nodes(own)
    units = own.reshape(-1, layout.UNIT_WORDS)
    pointers, boxes = node_boxes(units, unit, half)
    offset, kind = layout.unpack_pointer(pointers)
    used = pointers != layout.INVALID_POINTER
    is_box = used & ((kind == layout.NODE_BOX_FP16) | (kind == layout.NODE_BOX_FP32))
    is_leaf = used & ~is_box
    child = np.searchsorted(unit, offset // layout.UNIT_BYTES)
    leaf_units = layout.NODE_BYTES[layout.NODE_INSTANCE if header.kind else 0] // 64
    leaf = (offset // layout.UNIT_BYTES - header.leaf_unit) // leaf_units
    parent, slot = np.nonzero(is_leaf)
    order = np.argsort(leaf[parent, slot])
    rows = None
    if not header.kind:
        types = np.zeros(header.leaf_count, np.uint8)
        types[leaf[is_leaf]] = kind[is_leaf]
        rows = decode_triangles(leaf_records(units, header), types, unpack_fan_table(own, header))
    exact = np.empty((len(unit), 4, 2, 3), np.float32)
    exact[:, :, 0], exact[:, :, 1] = np.inf, -np.inf
    if rows is None:
        exact[is_leaf] = boxes[is_leaf]  # what places a BLAS is the TLAS builder's business
    elif header.leaf_count:
        first = np.flatnonzero(np.r_[True, rows.block[1:] != rows.block[:-1]])
        low = np.minimum.reduceat(rows.positions.min(1), first, axis=0)
        high = np.maximum.reduceat(rows.positions.max(1), first, axis=0)
        exact[is_leaf] = np.stack([low, high], 1)[leaf[is_leaf]]
    for node in range(len(unit) - 1, -1, -1):  # depth first: children stand behind their parent
        for s in np.flatnonzero(is_box[node]):
            below = exact[child[node, s]]
            exact[node, s] = below[:, 0].min(0), below[:, 1].max(0)
    first_leaf = base + header.leaf_unit * layout.UNIT_WORDS
    leaf_word = first_leaf + np.arange(header.leaf_count) * leaf_units * layout.UNIT_WORDS
    return ContainerMap(
        base=base,
        header=header,
        node_word=base + unit * layout.UNIT_WORDS,
        node_half=half,
        exact=exact,
        leaf_word=leaf_word,
        leaf_parent=parent[order],
        leaf_slot=slot[order],
        rows=rows,
        fan_row=find_fan_rows(words, np.full(header.leaf_count, base), leaf_word),
    )
