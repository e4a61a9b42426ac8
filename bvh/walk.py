"""The structure of one container under test: what can be reached from its root, and whether the
boxes and the order of what was reached are right. Used by `bvh.validate`.

Trusts nothing in the bytes: pointers are checked before they are followed, and a node reached
twice is not followed again, so a cycle ends.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.decode import node_boxes
from bvh.header import KIND_BLAS, KIND_TLAS, Header
from bvh.layout import (
    HEADER_BYTES,
    INVALID_POINTER,
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_INSTANCE,
    NODE_NAMES,
    NODE_PROCEDURAL,
    NODE_TRIANGLE_0,
    NODE_TRIANGLE_1,
    NODE_TRIANGLE_3,
    ROOT_POINTER,
    UNIT_BYTES,
    UNIT_WORDS,
    pack_pointer,
    unpack_pointer,
)
from bvh.tree import EMPTY, depth_first, empty_bounds

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

ROOT_UNIT = HEADER_BYTES // UNIT_BYTES
PER_CHECK = 16  # faults listed for one check of one container


@dataclass(frozen=True, slots=True)
class Fault:
    """`byte_offset` counts from the start of the scene buffer, `node_pointer` from the
    container; `words` are the raw words of the node."""

    container: str
    message: str
    byte_offset: int
    node_pointer: int
    words: tuple[int, ...]

    def __str__(self) -> str:
        raw = " ".join(f"{word:08x}" for word in self.words)
        return (
            f"{self.container}: {self.message} (node 0x{self.node_pointer:x} "
            f"at byte {self.byte_offset}: {raw})"
        )


@dataclass(frozen=True, slots=True)
class Nodes:
    """Box nodes reached from the root, level by level. Slots that cannot be followed are EMPTY
    in `children`; leaves are `~index` into the leaf section."""

    unit: I64  # [n]
    kind: I64  # [n]
    pointers: U32  # [n, 4]
    boxes: F32  # [n, 4, 2, 3]
    children: I32  # [n, 4]
    levels: list[slice]


class Container:
    """One container under test and the faults found in it."""

    def __init__(self, name: str, words: U32, parents: U32, base_bytes: int, header: Header):
        self.name = name
        self.header = header
        self.base_bytes = base_bytes
        self.units = words[: header.size_units * UNIT_WORDS].reshape(-1, UNIT_WORDS)
        self.parents = parents[: header.size_units]
        self.leaf_kind = NODE_INSTANCE if header.kind == KIND_TLAS else NODE_TRIANGLE_0
        if header.sphere_count:
            self.leaf_kind = NODE_PROCEDURAL
        self.leaf_units = NODE_BYTES[self.leaf_kind] // UNIT_BYTES
        self.faults: list[Fault] = []

    def fault(self, message: str, unit: int, kind: int) -> None:
        count = NODE_BYTES[kind] // UNIT_BYTES
        words = self.units[unit : unit + count].reshape(-1)
        self.faults.append(
            Fault(
                self.name,
                message,
                self.base_bytes + unit * UNIT_BYTES,
                int(pack_pointer(unit * UNIT_BYTES, kind)),
                tuple(int(word) for word in words),
            )
        )

    def header_fault(self, message: str) -> None:
        words = tuple(int(word) for word in self.units[:ROOT_UNIT].reshape(-1))
        self.faults.append(Fault(self.name, message, self.base_bytes, ROOT_POINTER, words))

    def leaf_fault(self, message: str, leaf: int, kind: int | None = None) -> None:
        unit = self.header.leaf_unit + leaf * self.leaf_units
        self.fault(message, unit, self.leaf_kind if kind is None else kind)


def walk(c: Container) -> Nodes:
    header = c.header
    reached = np.zeros(header.size_units, np.bool_)
    reached[: ROOT_UNIT + 2] = True
    linked = np.zeros(header.size_units, np.bool_)
    unit, kind = np.array([ROOT_UNIT], np.int64), np.array([NODE_BOX_FP32], np.int64)
    parts: list[tuple[I64, I64, U32, F32, I32]] = []
    levels, used = [], 1
    if c.parents[ROOT_UNIT] != INVALID_POINTER:
        c.fault(f"the root has a parent link 0x{c.parents[ROOT_UNIT]:x}", ROOT_UNIT, NODE_BOX_FP32)
    linked[ROOT_UNIT] = True
    while len(unit):
        levels.append(slice(used - len(unit), used))
        pointers, boxes = node_boxes(c.units, unit, kind == NODE_BOX_FP16)
        offset, child_kind = unpack_pointer(pointers)
        child = offset // UNIT_BYTES
        is_box = (child_kind == NODE_BOX_FP16) | (child_kind == NODE_BOX_FP32)
        is_leaf = child_kind == c.leaf_kind
        if header.kind == KIND_BLAS and not header.sphere_count:
            is_leaf |= child_kind <= (NODE_TRIANGLE_3 if header.fan_unit else NODE_TRIANGLE_1)
        live = pointers != INVALID_POINTER
        _report_slots(c, live & ~is_box & ~is_leaf, unit, kind, pointers, "illegal node type")
        size = np.where(child_kind == NODE_BOX_FP16, 1, 2)
        in_nodes = (child > ROOT_UNIT) & (child + size <= header.leaf_unit)
        leaf = (child - header.leaf_unit) // c.leaf_units
        in_leaves = (child >= header.leaf_unit) & (leaf < header.leaf_count)
        aligned = (child - header.leaf_unit) % c.leaf_units == 0
        outside = (is_box & ~in_nodes) | (is_leaf & ~(in_leaves & aligned))
        _report_slots(c, live & outside, unit, kind, pointers, "pointer out of range or misaligned")
        live &= (is_box & in_nodes) | (is_leaf & in_leaves & aligned)
        # Follow the first pointer to a node only.
        first = np.zeros(live.size, np.bool_)
        flat = np.flatnonzero(live)
        _, index = np.unique(child.reshape(-1)[flat], return_index=True)
        first[flat[index]] = True
        fresh = first.reshape(live.shape) & ~reached[np.where(live, child, 0)]
        _report_slots(
            c, live & ~fresh, unit, kind, pointers, "node reached twice (shared or a cycle)"
        )
        live &= fresh
        reached[child[live]] = True
        linked[child[live]] = True
        wide = live & (size == 2) & is_box
        reached[child[wide] + 1] = True
        above = np.broadcast_to(pack_pointer(unit * UNIT_BYTES, kind)[:, None], child.shape)
        for row, slot in np.argwhere(live)[c.parents[child[live]] != above[live]][:PER_CHECK]:
            at = int(child[row, slot])
            c.fault(
                f"parent link 0x{c.parents[at]:x}, its parent is 0x{above[row, slot]:x}",
                at,
                int(child_kind[row, slot]),
            )
        follow = live & is_box
        children = np.full(live.shape, EMPTY, np.int32)
        children[follow] = used + np.arange(int(follow.sum()))
        children[live & is_leaf] = ~leaf[live & is_leaf]
        parts.append((unit, kind, pointers, boxes, children))
        unit, kind = child[follow], child_kind[follow]
        used += len(unit)
    for at in np.flatnonzero(~linked & (c.parents != INVALID_POINTER))[:PER_CHECK]:
        c.fault(f"parent link 0x{c.parents[at]:x} at a unit where no node starts", int(at), 4)
    units, kinds, pointer_rows, box_rows, child_rows = zip(*parts, strict=True)
    return Nodes(
        np.concatenate(units),
        np.concatenate(kinds),
        np.concatenate(pointer_rows),
        np.concatenate(box_rows),
        np.concatenate(child_rows),
        levels,
    )


def _report_slots(
    c: Container, bad: Mask, unit: I64, kind: I64, pointers: U32, message: str
) -> None:
    if not bad.any():
        return
    for row, slot in np.argwhere(bad)[:PER_CHECK]:
        pointer = int(pointers[row, slot])
        c.fault(
            f"child {slot}: {message}, 0x{pointer:x} ({NODE_NAMES[pointer & 7]} at byte "
            f"{unpack_pointer(pointer)[0]} of the container)",
            int(unit[row]),
            int(kind[row]),
        )


def _check_boxes(c: Container, nodes: Nodes, leaf_bounds: F32) -> F32:
    """Boxes, completeness and order; returns the bounds `[2, 3]` of everything."""
    empty = nodes.pointers == INVALID_POINTER
    numbers = np.isfinite(nodes.boxes).all(axis=(2, 3))
    holds_nan = np.isnan(nodes.boxes).all(axis=(2, 3))
    for row, slot in np.argwhere(empty & ~holds_nan)[:PER_CHECK]:
        c.fault(f"child {slot}: empty slot with bounds", int(nodes.unit[row]), int(nodes.kind[row]))
    for row, slot in np.argwhere(~empty & ~numbers)[:PER_CHECK]:
        c.fault(f"child {slot}: bounds are not finite", int(nodes.unit[row]), int(nodes.kind[row]))
    bounds = empty_bounds(len(nodes.unit))
    for level in reversed(nodes.levels):
        children, boxes = nodes.children[level], nodes.boxes[level]
        exact = empty_bounds(children.size).reshape(*children.shape, 2, 3)
        inner = children >= 0
        leaf = (children < 0) & (children != EMPTY)
        exact[inner] = bounds[children[inner]]
        exact[leaf] = leaf_bounds[~children[leaf]]
        with np.errstate(invalid="ignore"):
            below = exact[:, :, 0] < boxes[:, :, 0]
            beyond = exact[:, :, 1] > boxes[:, :, 1]
            clipped_low = np.fmax(exact[:, :, 0], boxes[:, :, 0])
            clipped_high = np.fmin(exact[:, :, 1], boxes[:, :, 1])
        for row, slot, axis in np.argwhere(below | beyond)[:PER_CHECK]:
            c.fault(
                f"child {slot}: box [{boxes[row, slot, 0, axis]}, {boxes[row, slot, 1, axis]}] "
                f"on {'xyz'[axis]} does not enclose [{exact[row, slot, 0, axis]}, "
                f"{exact[row, slot, 1, axis]}] below it",
                int(nodes.unit[level][row]),
                int(nodes.kind[level][row]),
            )
        bounds[level, 0] = np.where(below, clipped_low, exact[:, :, 0]).min(axis=1)
        bounds[level, 1] = np.where(beyond, clipped_high, exact[:, :, 1]).max(axis=1)
    _check_order(c, nodes)
    return bounds[0]


def _check_order(c: Container, nodes: Nodes) -> None:
    """Every node of the header's counts is there, inner nodes depth first without gaps, leaves in
    the same walk's order."""
    header = c.header
    expected = header.nodes_fp32 + header.nodes_fp16
    if len(nodes.unit) != expected:
        c.fault(
            f"{len(nodes.unit)} box nodes can be reached, the header counts {expected}",
            ROOT_UNIT,
            NODE_BOX_FP32,
        )
    leaves = ~nodes.children[(nodes.children < 0) & (nodes.children != EMPTY)]
    missing = np.ones(header.leaf_count, np.bool_)
    missing[leaves] = False
    for leaf in np.flatnonzero(missing)[:PER_CHECK]:
        c.leaf_fault("leaf that no node points to", int(leaf))
    if len(nodes.unit) != expected or missing.any():
        return
    if len(nodes.levels) != header.depth:
        c.fault(
            f"{len(nodes.levels)} levels, the header says {header.depth}", ROOT_UNIT, NODE_BOX_FP32
        )
    inner_rank, leaf_rank = depth_first(nodes.children)
    size = np.where(nodes.kind == NODE_BOX_FP16, 1, 2)
    by_rank = np.empty_like(size)
    by_rank[inner_rank] = size
    start = ROOT_UNIT + np.cumsum(by_rank) - by_rank
    for node in np.flatnonzero(start[inner_rank] != nodes.unit)[:PER_CHECK]:
        c.fault(
            f"not in depth-first order (expected at byte {64 * int(start[inner_rank[node]])} of "
            "the container)",
            int(nodes.unit[node]),
            int(nodes.kind[node]),
        )
    for leaf in np.flatnonzero(leaf_rank != np.arange(header.leaf_count))[:PER_CHECK]:
        c.leaf_fault(f"not in leaf order (expected as leaf {leaf_rank[leaf]})", int(leaf))


def check_structure(c: Container, nodes: Nodes, leaf_bounds: F32) -> F32:
    bounds = _check_boxes(c, nodes, leaf_bounds)
    stated = c.header.bounds
    if (bounds[0] < stated[0]).any() or (bounds[1] > stated[1]).any():
        c.header_fault("the header's bounds do not enclose the tree")
    return stated
