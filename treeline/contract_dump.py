"""`treeline contract open`: a foreign dump as tables, as files, and as a traced ray."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bvh.contract import descriptor as descriptors
from bvh.contract.dump import Dump, Extent, decode_dump, read_memory, read_pages
from bvh.contract.ledger import BY_ID
from bvh.contract.memory import GuestMemory
from bvh.contract.node_fields import FIELDS
from bvh.contract.pointer import FileOffset, GuestAddress, NodePointer, file_offset
from bvh.layout import NODE_BYTES, NODE_NAMES, UNIT_BYTES
from engine.gpu.errors import UserError
from treeline.outputs import whole_file

EXPORT_VERSION = 1
FAULTS_LISTED = 1000  # spelled out; all are counted


@dataclass(frozen=True, slots=True)
class Opened:
    """A dump with what was said about it. `base` is the guest address of its first byte."""

    path: Path
    descriptor: descriptors.Descriptor
    root: NodePointer
    extents: list[Extent]
    memory: GuestMemory
    dump: Dump


def open_dump(
    path: Path, words: tuple[int, ...], root: int, base: int | None, pages: Path | None
) -> Opened:
    """`base`: guest address of the file's first byte, the descriptor's base if not given. `pages`
    replaces it by a table of extents."""
    descriptor = descriptors.unpack(words)
    size = path.stat().st_size
    if pages is not None:
        extents = read_pages(pages)
    else:
        start = GuestAddress(descriptor.base if base is None else base)
        whole = size // UNIT_BYTES * UNIT_BYTES
        if not whole:
            raise UserError(f"{path}: {size} bytes hold no {UNIT_BYTES}-byte block")
        extents = [Extent(start, FileOffset(0), whole)]
    memory = read_memory(path, extents)
    pointer = NodePointer(root)
    return Opened(
        path, descriptor, pointer, extents, memory, decode_dump(memory, descriptor, pointer)
    )


def place(opened: Opened, address: GuestAddress) -> FileOffset | None:
    """Where the file holds a guest address."""
    for extent in opened.extents:
        inside = extent.address <= address < extent.address + extent.size
        if inside and extent.offset is not None:
            return FileOffset(extent.offset + file_offset(address, extent.address))
    return None


def summary(opened: Opened) -> dict[str, Any]:
    """Plain data: the descriptor, node kinds, extents, faults, and each field's label."""
    dump = opened.dump
    kinds = Counter(dump.kinds.tolist())
    finite = bool(np.isfinite(dump.bounds).all())
    return {
        "file": opened.path.name,
        "descriptor": {
            "base": f"0x{opened.descriptor.base:x}",
            "size_bytes": opened.descriptor.size_bytes,
            "growth": opened.descriptor.growth,
            "sort": opened.descriptor.sort,
            "return_mode": opened.descriptor.return_mode,
            "other_bits": f"0x{opened.descriptor.other:x}",
        },
        "root": f"0x{opened.root:x}",
        "nodes": {NODE_NAMES[kind]: kinds[kind] for kind in sorted(kinds)},
        "depth": int(dump.depth.max(initial=-1)) + 1,
        "bounds": dump.bounds.tolist() if finite else None,
        "address_range": _range(dump),
        "fault_count": len(dump.faults),
        "faults": [_fault(opened, index) for index in range(min(len(dump.faults), FAULTS_LISTED))],
        "fields": [
            {
                "node": NODE_NAMES[kind],
                "field": field.name,
                "byte": field.byte,
                "label": field.label,
                "ledger": field.row,
                "source": BY_ID[field.row].source,
            }
            for kind in sorted(kinds)
            for field in FIELDS[kind]
        ],
        "unread_bits": unread(dump),
    }


def unread(dump: Dump) -> list[dict[str, Any]]:
    """Words that hold something and that no test reads, kept as they are: by node type, byte and
    value, the most frequent first."""
    found: Counter[tuple[int, int, int]] = Counter()
    for kind in np.unique(dump.kinds).tolist():
        words = dump.words[dump.kinds == kind]
        for field in FIELDS[kind]:
            if field.name.startswith("unread"):
                first = field.byte // 4
                for i in range(first, first + field.shape[0]):
                    values, counts = np.unique(words[:, i], return_counts=True)
                    pairs = zip(values.tolist(), counts.tolist(), strict=True)
                    found.update({(kind, 4 * i, word): n for word, n in pairs if word})
    return [
        {"node": NODE_NAMES[kind], "byte": byte, "word": f"{word:08x}", "count": count}
        for (kind, byte, word), count in found.most_common(16)
    ]


def export_npz(opened: Opened, path: Path) -> None:
    """Nodes in breadth-first order. Keys: format, version, descriptor [4], root, pointers,
    addresses, file_offsets (-1: none), kinds, depth, parents (-1: root), words [n, 32] raw and
    zero-padded, triangle_pointers [m] with their own types, triangles [m, 3, 3] float32."""
    dump = opened.dump
    offsets = [place(opened, GuestAddress(address)) for address in dump.addresses.tolist()]
    pointers, corners = dump.triangles()
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(
            file,
            format="treeline-dump",
            version=EXPORT_VERSION,
            descriptor=np.array(descriptors.pack(opened.descriptor), np.uint32),
            root=np.uint64(opened.root),
            pointers=dump.pointers,
            addresses=dump.addresses,
            file_offsets=np.array([-1 if at is None else at for at in offsets], np.int64),
            kinds=dump.kinds.astype(np.uint8),
            depth=dump.depth.astype(np.int32),
            parents=dump.parents,
            words=dump.words,
            triangle_pointers=pointers,
            triangles=corners,
        )


def export_obj(opened: Opened, path: Path) -> None:
    """Every finite triangle in slot order, one object; vertices are not shared."""
    _, corners = opened.dump.triangles()
    finite = np.isfinite(corners).all(axis=(1, 2))
    lines = [f"# {opened.path.name}: {int(finite.sum())} triangles", "o dump"]
    for triangle in corners[finite]:
        lines += [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in triangle.tolist()]
    lines += [f"f {i} {i + 1} {i + 2}" for i in range(1, 3 * int(finite.sum()), 3)]
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="ascii")


def _range(dump: Dump) -> list[str] | None:
    if not len(dump):
        return None
    sizes = np.array(NODE_BYTES)[dump.kinds].astype(np.uint64)
    return [f"0x{int(dump.addresses.min()):x}", f"0x{int((dump.addresses + sizes).max()):x}"]


def _fault(opened: Opened, index: int) -> dict[str, Any]:
    fault, dump = opened.dump.faults[index], opened.dump
    address = GuestAddress(int(dump.addresses[fault.node])) if fault.node >= 0 else None
    words = dump.raw(fault.node).tolist() if fault.node >= 0 else []
    return {
        "node_pointer": f"0x{fault.pointer:x}",
        "address": None if address is None else f"0x{address:x}",
        "file_offset": None if address is None else place(opened, address),
        "message": fault.message,
        "words": [f"{word:08x}" for word in words],
    }
