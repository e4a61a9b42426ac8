"""A node as text: its decoded fields, and its raw words."""

from typing import Any

import numpy as np

from bvh.header import HEADER
from bvh.layout import (
    BOX_WIDTH,
    INSTANCE_BLAS_WORD,
    INSTANCE_CUSTOM_WORD,
    INSTANCE_GEOMETRY_COUNT_WORD,
    INSTANCE_INDEX_MASK,
    INSTANCE_MASK_SHIFT,
    INSTANCE_OBJECT_WORD,
    INSTANCE_WORLD_TO_OBJECT_WORD,
    INVALID_POINTER,
    NODE_NAMES,
    ROOT_POINTER,
    TRIANGLE_FLAGS_WORD,
    TRIANGLE_SLOTS,
    unpack_instance_flags,
)
from treeline.view.node_ref import WHOLE_TLAS, NodeRef
from treeline.view.structure_tree import BOX_16, BOX_32, INSTANCE, SPHERE, StructureTree

Lines = list[tuple[str, str]]
WORDS_A_LINE = 4
_DESCRIPTOR = HEADER.offsets["descriptor"] // 4


def node_fields(tree: StructureTree, ref: NodeRef) -> Lines:
    """(name, value) of everything that the node's bytes say, and where they are."""
    row = tree.row(ref)
    above = tree.parent(ref)
    parent = "none" if above is None else f"0x{above.pointer:08x} {tree.label(above)}"
    lines = [
        ("kind", f"{row.kind}, type {ref.pointer & 7} ({NODE_NAMES[ref.pointer & 7]})"),
        ("byte offset", f"{row.offset} (0x{row.offset:x})"),
        ("node pointer", f"0x{row.pointer:08x}"),
        ("in the scene buffer", f"0x{row.pointer_64:016x}"),
        ("parent", parent),
        ("level", str(row.level)),
        ("half area", f"{row.half_area:.6g} m2"),
    ]
    if row.kind in (BOX_16, BOX_32):
        lines += _box_fields(tree, ref)
    elif row.kind == INSTANCE:
        lines += _instance_fields(tree, ref)
    elif row.kind == SPHERE:
        lines += _sphere_fields(tree, ref)
    else:
        lines += _triangle_fields(tree, ref)
    if ref.pointer == ROOT_POINTER:
        lines += _header_fields(tree, ref)
    return lines


def raw_lines(tree: StructureTree, ref: NodeRef) -> list[str]:
    """The node's words in hex, four a line behind their byte offset in the node."""
    words = tree.words(ref).tolist()
    return [
        f"+{4 * at:02x}  " + " ".join(f"{word:08x}" for word in words[at : at + WORDS_A_LINE])
        for at in range(0, len(words), WORDS_A_LINE)
    ]


def node_text(tree: StructureTree, ref: NodeRef) -> str:
    """All of it, to be pasted elsewhere."""
    fields = node_fields(tree, ref)
    width = max(len(name) for name, _ in fields)
    lines = [f"{name:<{width}}  {value}" for name, value in fields]
    return "\n".join([tree.label(ref), *lines, *raw_lines(tree, ref), ""])


def numbers(values: Any) -> str:
    """Numbers with six digits."""
    return " ".join(f"{float(value):.6g}" for value in np.asarray(values).reshape(-1))


def _box_fields(tree: StructureTree, ref: NodeRef) -> Lines:
    pointers, boxes = tree.slot_boxes(ref)
    lines: Lines = []
    for slot in range(BOX_WIDTH):
        pointer = int(pointers[slot])
        if pointer == INVALID_POINTER:
            lines.append((f"slot {slot}", f"0x{pointer:08x} empty"))
            continue
        lines += [
            (f"slot {slot}", f"0x{pointer:08x} {NODE_NAMES[pointer & 7]}"),
            ("  min", numbers(boxes[slot, 0])),
            ("  max", numbers(boxes[slot, 1])),
        ]
    return lines


def _triangle_fields(tree: StructureTree, ref: NodeRef) -> Lines:
    rows = tree.triangles(ref)
    shown = range(len(rows.block)) if ref.triangle < 0 else [ref.triangle]
    flags = int(tree.words(ref)[TRIANGLE_FLAGS_WORD])
    lines: Lines = [("geometry", str(int(rows.geometry[0])))]
    lines.append(("opaque", "yes" if rows.opaque[0] else "no"))
    for k in shown:
        primitive = int(rows.primitive[k])
        slots = ", ".join(f"V{slot}" for slot in TRIANGLE_SLOTS[k])
        name = "none" if primitive == INVALID_POINTER else str(primitive)
        lines.append((f"triangle {k}", f"primitive {name}"))
        lines.append(("  slots", f"{slots}, flag byte 0x{flags >> 8 * k & 0xFF:02x}"))
        lines += [(f"  vertex {i}", numbers(rows.positions[k, i])) for i in range(3)]
    return lines


def _sphere_fields(tree: StructureTree, ref: NodeRef) -> Lines:
    sphere = tree.sphere(ref)
    return [
        ("geometry", str(int(sphere.geometry[0]))),
        ("opaque", "yes" if sphere.opaque[0] else "no"),
        ("primitive", str(int(sphere.primitive[0]))),
        ("center", numbers(sphere.centers[0])),
        ("radius", numbers(sphere.radii[0])),
        ("own min", numbers(sphere.boxes[0, 0])),
        ("own max", numbers(sphere.boxes[0, 1])),
    ]


def _instance_fields(tree: StructureTree, ref: NodeRef) -> Lines:
    words = tree.words(ref)
    custom, first = int(words[INSTANCE_CUSTOM_WORD]), int(words[INSTANCE_OBJECT_WORD])
    root = int(words[INSTANCE_BLAS_WORD]) | int(words[INSTANCE_BLAS_WORD + 1]) << 32
    blas, number = tree.blas_of(ref), tree.instance_of(ref)
    flags = unpack_instance_flags(first)
    to_object = words[INSTANCE_WORLD_TO_OBJECT_WORD : INSTANCE_WORLD_TO_OBJECT_WORD + 12]
    to_world = tree.transform(number)
    return [
        ("instance", str(number)),
        ("BLAS", f"{blas} {tree.bvh.blas_names[blas]}, root 0x{root:016x}"),
        ("mask", f"0x{custom >> INSTANCE_MASK_SHIFT:02x}"),
        ("custom index", str(custom & INSTANCE_INDEX_MASK)),
        ("first object", str(first & INSTANCE_INDEX_MASK)),
        ("flags", flags.name if flags and flags.name else "none"),
        ("geometries", str(int(words[INSTANCE_GEOMETRY_COUNT_WORD]))),
        *((f"object to world {i}", numbers(row)) for i, row in enumerate(to_world)),
        *(
            (f"world to object {i}", numbers(row))
            for i, row in enumerate(to_object.view(np.float32).reshape(3, 4))
        ),
    ]


def _header_fields(tree: StructureTree, ref: NodeRef) -> Lines:
    header = tree.header(ref.container)
    first = tree.base(ref.container) // 4
    descriptor = tree.bvh.words[first + _DESCRIPTOR : first + _DESCRIPTOR + 4].tolist()
    leaves = "instances" if ref.container == WHOLE_TLAS else "blocks"
    leaves = "spheres" if header.sphere_count else leaves
    empty = bool((header.bounds[0] > header.bounds[1]).any())
    lines = [
        ("container bytes", f"{header.size_bytes} from {tree.base(ref.container)}"),
        ("nodes", f"{header.nodes_fp16} FP16, {header.nodes_fp32} FP32"),
        (leaves, str(header.leaf_count)),
        ("primitives", str(header.primitive_count)),
        ("box levels", str(header.depth)),
        ("descriptor", " ".join(f"{word:08x}" for word in descriptor)),
        ("bounds min", "empty" if empty else numbers(header.bounds[0])),
        ("bounds max", "empty" if empty else numbers(header.bounds[1])),
    ]
    if header.fan_count:
        lines.append(("fans", f"{header.fan_count}, table at unit {header.fan_unit}"))
    return lines
