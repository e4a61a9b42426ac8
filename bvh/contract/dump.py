"""Foreign bytes, decoded by the ledger: every node that a root reaches, and the first fault.

Trusts nothing: a pointer is checked before it is followed, a node reached twice is followed once,
and the number of nodes is bounded. Keeps each node's words as they are. User nodes (types 6, 7)
are counted and kept, not followed: their bytes belong to software.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract import descriptor as descriptors
from bvh.contract import pointer as pointers
from bvh.contract.box import read_boxes
from bvh.contract.memory import Access, GuestMemory
from bvh.contract.pointer import FileOffset, GuestAddress, NodePointer
from engine.gpu.errors import UserError

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

NODE_LIMIT = 1 << 22


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of a dump: guest addresses from `address`, in the file from `offset`; without an
    offset the addresses are valid and their pages have not arrived."""

    address: GuestAddress
    offset: FileOffset | None
    size: int


@dataclass(frozen=True, slots=True)
class Fault:
    """`node` is the index of the node that holds the fault, -1 for the root pointer."""

    node: int
    pointer: NodePointer
    message: str


@dataclass(frozen=True, slots=True)
class Dump:
    """Nodes breadth first. `parents` are indices, -1 for the root; `slot_bounds` are those of the
    parent's slot, NaN for the root. `words` are raw, zero behind a 64-byte node."""

    pointers: U64  # [n]
    kinds: Index  # [n]
    addresses: U64  # [n]
    depth: Index  # [n]
    parents: Index  # [n]
    slot_bounds: F32  # [n, 2, 3]
    words: U32  # [n, 32]
    faults: tuple[Fault, ...]
    bounds: F32  # [2, 3] of the root's slots; empty (min > max) if it is no box

    def __len__(self) -> int:
        return len(self.pointers)

    def raw(self, index: int) -> U32:
        """The node's own words, 16 or 32."""
        return self.words[index, : layout.NODE_BYTES[int(self.kinds[index])] // 4]

    def triangles(self, *, fan: bool = True) -> tuple[U64, F32]:
        """(pointers with the triangle's own type, `[m, 3, 3]` vertices in slot order). A pointer
        of type k stands for types k..0 with `fan`, the convention of GPURT's pairs (observed),
        else for k alone. Triangles that two pointers name come once, in pointer order."""
        found, corners = _triangles(self.words, self.kinds, fan)
        base = self.pointers[found[0]] & ~np.uint64(pointers.TYPE_MASK)
        named, first = np.unique(base | found[1].astype(np.uint64), return_index=True)
        return named, corners[first]


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
    """All nodes that can be reached, level by level; faults by level and node."""
    faults: list[Fault] = []
    levels: list[_Level] = []
    level = _Level(
        np.array([root], np.uint64),
        np.array([-1], np.int64),
        np.full((1, 2, 3), np.nan, np.float32),
        np.zeros((1, 2 * layout.UNIT_WORDS), np.uint32),
    )
    seen, count = level.pointers, 0
    while len(level.pointers) and count < NODE_LIMIT:
        found: list[Fault] = []
        level = _load(memory, descriptor, level, found)
        levels.append(level)
        following = _children(level, count, seen, found)
        _check_triangles(level, count, found)
        faults += sorted(found, key=lambda fault: fault.node)
        count += len(level.pointers)
        level = following
        seen = np.union1d(seen, level.pointers)
    if len(level.pointers):
        faults.append(Fault(-1, root, f"more than {NODE_LIMIT} nodes"))
    reached = np.concatenate([part.pointers for part in levels])
    words = np.concatenate([part.words for part in levels])
    return Dump(
        pointers=reached,
        kinds=pointers.kinds(reached),
        addresses=_addresses(descriptor, reached),
        depth=np.repeat(np.arange(len(levels)), [len(part.pointers) for part in levels]),
        parents=np.concatenate([part.parents for part in levels]),
        slot_bounds=np.concatenate([part.bounds for part in levels]),
        words=words,
        faults=tuple(faults),
        bounds=_root_bounds(reached, words),
    )


@dataclass(frozen=True, slots=True)
class _Level:
    pointers: U64
    parents: Index
    bounds: F32
    words: U32


def _addresses(descriptor: descriptors.Descriptor, found: U64) -> U64:
    return np.uint64(descriptor.base) + (pointers.indices(found) << np.uint64(pointers.UNIT_SHIFT))


def _load(
    memory: GuestMemory,
    descriptor: descriptors.Descriptor,
    level: _Level,
    faults: list[Fault],
) -> _Level:
    """The nodes of a level that can be read, with their words."""
    kinds = pointers.kinds(level.pointers)
    blocks = np.array(layout.NODE_BYTES)[kinds] // layout.UNIT_BYTES
    last = pointers.indices(level.pointers) + (blocks - 1).astype(np.uint64)
    inside = last <= np.uint64(descriptor.last_unit)
    for i in np.flatnonzero(~inside).tolist():
        text = f"unit {last[i]} lies beyond the descriptor's {descriptor.last_unit}"
        faults.append(_fault(level, i, text))
    address = _addresses(descriptor, level.pointers)
    ready = inside.copy()
    for block in range(2):
        lanes = np.flatnonzero(ready & (blocks > block))
        at = address[lanes] + np.uint64(block * layout.UNIT_BYTES)
        words, access = memory.load_blocks(at)
        level.words[lanes, block * layout.UNIT_WORDS : (block + 1) * layout.UNIT_WORDS] = words
        for i in np.flatnonzero(access != Access.PRESENT).tolist():
            why = "is not declared" if access[i] == Access.INVALID else "has not arrived"
            faults.append(_fault(level, int(lanes[i]), f"the page of address 0x{at[i]:x} {why}"))
            ready[lanes[i]] = False
    return _Level(
        level.pointers[ready], level.parents[ready], level.bounds[ready], level.words[ready]
    )


def _fault(level: _Level, i: int, message: str) -> Fault:
    return Fault(int(level.parents[i]), NodePointer(int(level.pointers[i])), message)


def _children(level: _Level, first: int, seen: U64, faults: list[Fault]) -> _Level:
    """The next level, not loaded yet; `first` is the index of this level's first node."""
    kinds = pointers.kinds(level.pointers)
    lanes = np.flatnonzero((kinds == layout.NODE_BOX_FP16) | (kinds == layout.NODE_BOX_FP32))
    half = kinds[lanes] == layout.NODE_BOX_FP16
    narrow, low, high = read_boxes(level.words[lanes], half)
    children, bounds = narrow.astype(np.uint64), np.stack([low, high], axis=2)
    used = children != np.uint64(layout.INVALID_POINTER)
    sentinel = used & np.isin(children, np.array(pointers.SENTINELS, np.uint64))
    new = np.zeros(children.shape, np.bool_)
    flat = np.flatnonzero(used & ~sentinel & ~np.isin(children, seen))
    new.reshape(-1)[flat[np.unique(children.reshape(-1)[flat], return_index=True)[1]]] = True
    problems = (
        ("is a traversal sentinel", sentinel),
        ("has NaN bounds", np.isnan(bounds).any(axis=(2, 3))),
        ("has inverted bounds", (low > high).any(axis=2)),
        (
            "reaches beyond the box that its parent has for this node",
            _outside(low, high, level.bounds[lanes][:, None]),
        ),
        ("is reached a second time", ~new),
    )
    bad = np.zeros(children.shape, np.int64)
    for number, (_, where) in reversed(list(enumerate(problems, 1))):
        bad[used & where] = number
    for row, slot in np.argwhere(bad).tolist():
        text = f"slot {slot} (0x{children[row, slot]:x}) {problems[bad[row, slot] - 1][0]}"
        node = int(lanes[row])
        faults.append(Fault(first + node, NodePointer(int(level.pointers[node])), text))
    rows, slots = np.nonzero(new)
    return _Level(
        children[rows, slots],
        first + lanes[rows],
        bounds[rows, slots],
        np.zeros((len(rows), 2 * layout.UNIT_WORDS), np.uint32),
    )


def _outside(low: F32, high: F32, outer: F32) -> Mask:
    """Whether boxes `[..., 3]` leave `outer [..., 2, 3]`. NaN compares false: no fault here."""
    # FP16 rounds outward, by up to 2^-10 of the value: looser boxes below are no fault.
    with np.errstate(invalid="ignore", over="ignore"):
        slack = np.abs(outer).max(axis=(-2, -1), keepdims=True)[..., 0, :] * np.float32(2.0**-10)
        beyond = (low < outer[..., 0, :] - slack) | (high > outer[..., 1, :] + slack)
    return np.asarray(beyond.any(axis=-1))


def _triangles(words: U32, kinds: Index, fan: bool) -> tuple[tuple[Index, Index], F32]:
    """((node, type) of every triangle, by node and type), and their corners `[m, 3, 3]`."""
    vertices = np.ascontiguousarray(words[:, :15]).view(np.float32).reshape(-1, 5, 3)
    which = np.arange(layout.NODE_TRIANGLE_3 + 1)
    wanted = which <= kinds[:, None] if fan else which == kinds[:, None]
    node, kind = np.nonzero(wanted & (kinds <= layout.NODE_TRIANGLE_3)[:, None])
    slots = np.array(layout.TRIANGLE_SLOTS)[kind]
    return (node, kind), vertices[node[:, None], slots]


def _check_triangles(level: _Level, first: int, faults: list[Fault]) -> None:
    (node, kind), corners = _triangles(level.words, pointers.kinds(level.pointers), True)
    finite = np.asarray(np.isfinite(corners).all(axis=(1, 2)))
    outside = _outside(corners.min(axis=1), corners.max(axis=1), level.bounds[node])
    for i in np.flatnonzero(~finite | outside).tolist():
        text = "reaches beyond its parent's box" if finite[i] else "has vertices not finite"
        at = int(node[i])
        pointer = NodePointer(int(level.pointers[at]))
        faults.append(Fault(first + at, pointer, f"triangle {kind[i]} {text}"))


def _root_bounds(found: U64, words: U32) -> F32:
    kinds = pointers.kinds(found[:1])
    if not len(kinds) or kinds[0] not in (layout.NODE_BOX_FP16, layout.NODE_BOX_FP32):
        return np.array([[np.inf] * 3, [-np.inf] * 3], np.float32)
    children, low, high = read_boxes(words[:1], kinds == layout.NODE_BOX_FP16)
    used = children[0] != layout.INVALID_POINTER
    bottom = np.fmin.reduce(low[0, used], axis=0, initial=np.float32(np.inf))
    return np.stack([bottom, np.fmax.reduce(high[0, used], axis=0, initial=np.float32(-np.inf))])
