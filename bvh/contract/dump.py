"""Foreign bytes, decoded by the ledger: every node that a root reaches, and the first fault.

Trusts nothing: a pointer is checked before it is followed, a node reached twice is followed once,
and the number of nodes is bounded. Keeps each node's words as they are. User nodes (types 6, 7)
are counted and kept, not followed: their bytes belong to software.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract import descriptor as descriptors
from bvh.contract import node_fields
from bvh.contract import pointer as pointers
from bvh.contract.memory import Access, GuestMemory
from bvh.contract.pointer import FileOffset, GuestAddress, NodePointer
from engine.gpu.errors import UserError

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

NODE_LIMIT = 1 << 22


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of a dump: guest addresses from `address`, in the file from `offset`; without an
    offset the addresses are valid and their pages have not arrived."""

    address: GuestAddress
    offset: FileOffset | None
    size: int


@dataclass(frozen=True, slots=True)
class Node:
    """`parent` is an index into `Dump.nodes`, -1 for the root. `bounds` is the slot of the parent
    that points here, None for the root. `words` are raw."""

    pointer: NodePointer
    kind: int
    address: GuestAddress
    depth: int
    parent: int
    bounds: F32 | None  # [2, 3]
    words: U32

    def fields(self) -> Any:
        """The node as one structured record (`bvh.contract.node_fields`)."""
        return node_fields.decode(self.words[None], self.kind)[0]


@dataclass(frozen=True, slots=True)
class Fault:
    node: int  # index of the node that holds the fault, -1 for the root pointer
    pointer: NodePointer
    message: str


@dataclass(frozen=True, slots=True)
class Dump:
    nodes: tuple[Node, ...]
    faults: tuple[Fault, ...]
    bounds: F32  # [2, 3] of the root's slots; empty if it is no box


def read_memory(path: Path, extents: list[Extent]) -> GuestMemory:
    """A dump file as guest memory; UserError for extents that leave the file or are no blocks."""
    data = path.read_bytes()
    memory = GuestMemory()
    for extent in extents:
        memory.declare(extent.address, extent.size)
        if extent.offset is None:
            continue
        part = data[extent.offset : extent.offset + extent.size]
        if len(part) != extent.size:
            end = extent.offset + extent.size
            raise UserError(f"{path}: bytes up to {end} are named, the file has {len(data)}")
        memory.write(extent.address, np.frombuffer(part, "<u4").astype(np.uint32))
    return memory


def read_pages(path: Path) -> list[Extent]:
    """Extents from a text file: `ADDRESS OFFSET SIZE` a line, `-` for an absent offset, any C
    base; # starts a comment."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        parts = line.split("#")[0].split()
        if not parts:
            continue
        try:
            address, offset, size = parts
            place = None if offset == "-" else FileOffset(int(offset, 0))
            found.append(Extent(GuestAddress(int(address, 0)), place, int(size, 0)))
        except ValueError:
            raise UserError(f"{path}:{number}: not 'ADDRESS OFFSET SIZE': {line.strip()}") from None
    return found


def decode_dump(memory: GuestMemory, descriptor: descriptors.Descriptor, root: NodePointer) -> Dump:
    """All nodes that can be reached, breadth first."""
    nodes: list[Node] = []
    faults: list[Fault] = []
    seen: set[int] = {root}
    todo: list[tuple[NodePointer, int, int, F32 | None]] = [(root, -1, 0, None)]
    while todo and len(nodes) < NODE_LIMIT:
        following = []
        for pointer, parent, depth, bounds in todo:
            node = _load(memory, descriptor, pointer, parent, depth, bounds)
            if isinstance(node, str):
                faults.append(Fault(parent, pointer, node))
                continue
            nodes.append(node)
            if node.kind in (layout.NODE_BOX_FP16, layout.NODE_BOX_FP32):
                following += _children(node, len(nodes) - 1, faults, seen)
            elif node.kind <= layout.NODE_TRIANGLE_3:
                _check_triangles(node, len(nodes) - 1, faults)
        todo = following
    if todo:
        faults.append(Fault(-1, root, f"more than {NODE_LIMIT} nodes"))
    return Dump(tuple(nodes), tuple(faults), _root_bounds(nodes))


def triangles(node: Node, *, fan: bool = True) -> list[tuple[int, F32]]:
    """(type, `[3, 3]` vertices in slot order) of a triangle pointer: types k..0 with `fan`, the
    convention of GPURT's pairs (observed), else k alone."""
    vertices = node.words[:15].view(np.float32).reshape(5, 3)
    kinds = range(node.kind, -1, -1) if fan else (node.kind,)
    return [(kind, vertices[list(layout.TRIANGLE_SLOTS[kind])]) for kind in kinds]


def _load(
    memory: GuestMemory,
    descriptor: descriptors.Descriptor,
    pointer: NodePointer,
    parent: int,
    depth: int,
    bounds: F32 | None,
) -> Node | str:
    found = pointers.unpack(pointer)
    blocks = layout.NODE_BYTES[found.kind] // layout.UNIT_BYTES
    if found.index + blocks - 1 > descriptor.last_unit:
        return (
            f"unit {found.index + blocks - 1} lies beyond the descriptor's {descriptor.last_unit}"
        )
    address = pointers.address_of(descriptor.base, pointer)
    at = np.uint64(address) + np.arange(blocks, dtype=np.uint64) * np.uint64(layout.UNIT_BYTES)
    words, access = memory.load_blocks(at)
    if access.any():
        worst = Access(int(access.max()))
        where = int(at[np.argmax(access)])
        text = "is not declared" if worst == Access.INVALID else "has not arrived"
        return f"the page of address 0x{where:x} {text}"
    return Node(pointer, found.kind, address, depth, parent, bounds, words.reshape(-1))


def _children(
    node: Node, index: int, faults: list[Fault], seen: set[int]
) -> list[tuple[NodePointer, int, int, F32 | None]]:
    fields = node.fields()
    with np.errstate(invalid="ignore"):
        bounds = fields["bounds"].astype(np.float32)
    found = []
    for slot, child in enumerate(int(pointer) for pointer in fields["children"]):
        if child == layout.INVALID_POINTER:
            continue
        problem = None
        if child in pointers.SENTINELS:
            problem = "is a traversal sentinel"
        elif np.isnan(bounds[slot]).any():
            problem = "has NaN bounds"
        elif (bounds[slot, 0] > bounds[slot, 1]).any():
            problem = "has inverted bounds"
        elif node.bounds is not None and _outside(bounds[slot], node.bounds):
            problem = "reaches beyond the box that its parent has for this node"
        elif child in seen:
            problem = "is reached a second time"
        if problem:
            faults.append(Fault(index, node.pointer, f"slot {slot} (0x{child:x}) {problem}"))
        if child not in seen and child not in pointers.SENTINELS:
            seen.add(child)
            found.append((NodePointer(child), index, node.depth + 1, bounds[slot]))
    return found


def _outside(inner: F32, outer: F32) -> bool:
    # FP16 rounds outward, by up to 2^-10 of the value: looser boxes below are no fault.
    slack = np.abs(outer).max() * np.float32(2.0**-10)
    return bool((inner[0] < outer[0] - slack).any() or (inner[1] > outer[1] + slack).any())


def _check_triangles(node: Node, index: int, faults: list[Fault]) -> None:
    for kind, corners in triangles(node):
        problem = None
        if not np.isfinite(corners).all():
            problem = "has vertices that are not finite"
        elif node.bounds is not None and _outside(
            np.stack([corners.min(0), corners.max(0)]), node.bounds
        ):
            problem = "reaches beyond its parent's box"
        if problem:
            faults.append(Fault(index, node.pointer, f"triangle {kind} {problem}"))


def _root_bounds(nodes: list[Node]) -> F32:
    empty = np.array([[np.inf] * 3, [-np.inf] * 3], np.float32)
    if not nodes or nodes[0].kind not in (layout.NODE_BOX_FP16, layout.NODE_BOX_FP32):
        return empty
    fields = nodes[0].fields()
    used = fields["children"] != layout.INVALID_POINTER
    with np.errstate(invalid="ignore"):
        boxes = fields["bounds"].astype(np.float32)[used]
    low = np.fmin.reduce(boxes[:, 0], axis=0, initial=np.float32(np.inf))
    high = np.fmax.reduce(boxes[:, 1], axis=0, initial=np.float32(-np.inf))
    return np.stack([low, high])
