"""Checks a scene buffer and names the first bad node, its byte and its raw words.

A box passes when it encloses every triangle, sphere or placed BLAS below it; the boxes of an FP16
node may be looser than the box its own parent holds for it, because tight parents cost nothing and
lose nothing. When a box is too small, what lies outside it is cut off before the levels above are
checked, so that one bad box is one fault and not a chain of them up to the root.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from bvh.cover import TOLERANCE, uncovered
from bvh.decode import TriangleRows, decode_triangles, leaf_records
from bvh.fan_blocks import fan_table_units, pack_fan_table, unpack_fan_table
from bvh.header import KIND_BLAS, KIND_TLAS, Header, pack_header, unpack_header
from bvh.layout import (
    HEADER_BYTES,
    INSTANCE_BLAS_BASE_WORD,
    INSTANCE_BLAS_WORD,
    INSTANCE_CUSTOM_WORD,
    INSTANCE_GEOMETRY_COUNT_WORD,
    INSTANCE_ID_WORD,
    INSTANCE_MASK_SHIFT,
    INSTANCE_OBJECT_TO_WORLD_WORD,
    INSTANCE_OBJECT_WORD,
    INSTANCE_WORLD_TO_OBJECT_WORD,
    INVALID_POINTER,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_INSTANCE,
    NODE_TRIANGLE_2,
    ROTATION_NIBBLES,
    TRIANGLE_FLAGS_WORD,
    TRIANGLE_PRIMITIVE_1_WORD,
    UNIT_BYTES,
    UNIT_WORDS,
    pack_instance_flags,
)
from bvh.scene_bvh import SceneBvh
from bvh.spheres import decode_spheres, sphere_bounds, sphere_faults
from bvh.tlas import world_bounds
from bvh.tree import EMPTY, empty_bounds
from bvh.triangles import triangle_bounds
from bvh.walk import PER_CHECK, ROOT_UNIT, Container, Fault, Nodes, check_structure, walk
from engine.gpu.errors import UserError

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Mask = NDArray[np.bool_]

# Stored matrices are rounded to float32; the entries of their product may be off by that much of
# the sum of absolute products (2^-24 each, and the inverse of a rounded matrix once more).
INVERSE_TOLERANCE = 1e-6


def validate(bvh: SceneBvh) -> list[Fault]:
    """Every fault found, by byte offset within each container, BLASes first; at most a few of
    one sort a container. Empty for a sound buffer."""
    faults: list[Fault] = []
    blas_bounds = empty_bounds(len(bvh.blas_bases))
    headers: list[Header | None] = []
    for i, base in enumerate(int(b) for b in bvh.blas_bases):
        name = f"BLAS {i} '{bvh.blas_names[i]}'"
        container = _open(bvh, name, base, KIND_BLAS, faults)
        headers.append(container.header if container else None)
        if container:
            blas_bounds[i] = _check_blas(container)
            faults += sorted(container.faults, key=lambda fault: fault.byte_offset)
    container = _open(bvh, "TLAS", 0, KIND_TLAS, faults)
    if container:
        _check_tlas(container, bvh, blas_bounds, headers)
        faults += sorted(container.faults, key=lambda fault: fault.byte_offset)
    return faults


def _open(bvh: SceneBvh, name: str, base: int, kind: int, faults: list[Fault]) -> Container | None:
    def refuse(message: str) -> None:
        words = bvh.words[base // 4 : base // 4 + HEADER_BYTES // 4]
        faults.append(Fault(name, message, base, 0, tuple(int(w) for w in words)))

    if base % 256 or base + HEADER_BYTES + NODE_BYTES[NODE_BOX_FP32] > 4 * len(bvh.words):
        refuse(f"no container can start at byte {base} of {4 * len(bvh.words)}")
        return None
    try:
        header = unpack_header(bvh.words[base // 4 :])
    except ValueError as error:
        refuse(f"header: {error}")
        return None
    leaf_units = NODE_BYTES[NODE_INSTANCE if kind == KIND_TLAS else 0] // UNIT_BYTES
    nodes = ROOT_UNIT + 2 * header.nodes_fp32 + header.nodes_fp16
    if header.kind != kind:
        refuse(f"header: kind {header.kind}, expected {kind}")
    elif base + header.size_bytes > 4 * len(bvh.words):
        refuse(f"header: {header.size_bytes} bytes do not fit the buffer")
    elif header.leaf_unit != nodes:
        refuse(f"header: leaves start at unit {header.leaf_unit}, its node counts say {nodes}")
    elif kind == KIND_TLAS and (header.fan_unit or header.sphere_count):
        refuse("header: a TLAS has neither fans nor spheres")
    elif header.sphere_count not in (0, header.leaf_count):
        refuse(f"header: {header.sphere_count} spheres of {header.leaf_count} leaves")
    elif header.fan_unit not in (0, nodes + leaf_units * header.leaf_count):
        refuse(f"header: fan table at unit {header.fan_unit}, not behind the leaves")
    elif bool(header.fan_unit) != bool(header.fan_count) or header.fan_count > header.leaf_count:
        refuse(f"header: {header.fan_count} fans of {header.leaf_count} leaves")
    elif header.size_units != nodes + leaf_units * header.leaf_count + fan_table_units(
        header.leaf_count, header.fan_count
    ):
        refuse(f"header: size of {header.size_units} units does not match its counts")
    elif header.base_bytes != base:
        refuse(f"header: the descriptor's base is {header.base_bytes}")
    else:
        words = bvh.words[base // 4 :]
        container = Container(name, words, bvh.parents[base // UNIT_BYTES :], base, header)
        expected = pack_header(header)
        for i in np.flatnonzero(words[: len(expected)] != expected):
            container.header_fault(f"header word {i} is 0x{words[i]:x}, not 0x{expected[i]:x}")
        return container
    return None


def _check_spheres(c: Container) -> F32:
    nodes = walk(c)
    header = c.header
    leaves = leaf_records(c.units, header)
    if header.leaf_count != header.primitive_count:
        c.header_fault(f"{header.leaf_count} spheres, {header.primitive_count} primitives")
    told: Counter[str] = Counter()
    for leaf, message in sphere_faults(leaves, header.geometry_count):
        told[message] += 1
        if told[message] <= PER_CHECK:
            c.leaf_fault(message, leaf)
    rows = decode_spheres(leaves)
    bounds = sphere_bounds(rows.centers, rows.radii)
    # What is no sphere has its fault already; its box is not checked here.
    lost = ~np.isfinite(bounds).all(axis=(1, 2)) | ~(rows.radii > 0)
    bounds[lost] = empty_bounds(int(lost.sum()))
    return check_structure(c, nodes, bounds)


def _check_blas(c: Container) -> F32:
    if c.header.sphere_count:
        return _check_spheres(c)
    nodes = walk(c)
    header = c.header
    blocks = leaf_records(c.units, header)
    types = np.zeros(header.leaf_count, np.uint8)
    leaf = (nodes.children < 0) & (nodes.children != EMPTY)
    types[~nodes.children[leaf]] = nodes.pointers[leaf] & 7
    pointed = np.zeros(header.leaf_count, np.bool_)
    pointed[~nodes.children[leaf]] = True
    held = (blocks[:, TRIANGLE_PRIMITIVE_1_WORD] != INVALID_POINTER).astype(np.int64)
    fan_ids = _check_fan_table(c)
    if fan_ids is not None:
        fan = fan_ids[:, 0] != INVALID_POINTER
        held = np.where(fan, 2 + (fan_ids[:, 3] != INVALID_POINTER), held)
    for i in np.flatnonzero(pointed & (held != types))[:PER_CHECK]:
        c.leaf_fault(
            f"the pointer says type {types[i]}, the block holds {1 + int(held[i])} triangle(s)",
            int(i),
            int(types[i]),
        )
    flags = blocks[:, TRIANGLE_FLAGS_WORD]
    legal = np.zeros(16, np.bool_)
    legal[list(ROTATION_NIBBLES)] = True
    wrong = ~legal[flags & 15]
    for k in range(1, 4):
        wrong |= (types >= k) & ~legal[(flags >> 8 * k) & 15]
    for i in np.flatnonzero(wrong)[:PER_CHECK]:
        c.leaf_fault("flag byte is no rotation", int(i), int(types[i]))
    if wrong.any():  # sources out of range: nothing below could be trusted
        flags = np.where(wrong, flags & 0xF0F0F0F0 | 0x09090909, flags)
        blocks = blocks.copy()
        blocks[:, TRIANGLE_FLAGS_WORD] = flags
    rows = decode_triangles(blocks, types, fan_ids)
    finite = np.asarray(np.isfinite(rows.positions).all(axis=(1, 2)))
    for i in np.flatnonzero(~finite)[:PER_CHECK]:
        c.leaf_fault("vertex is not finite", int(rows.block[i]), int(types[rows.block[i]]))
    order = np.lexsort((rows.block, rows.primitive, rows.geometry))
    geometry, primitive = rows.geometry[order], rows.primitive[order]
    twice = (geometry[1:] == geometry[:-1]) & (primitive[1:] == primitive[:-1])
    # Spatial splits repeat blocks: then more triangles are in blocks than the header counts.
    split = len(finite) > header.primitive_count and bool(twice.any())
    found = len(finite) - int(twice.sum()) if split else len(finite)
    if found != header.primitive_count:
        c.fault(
            f"{found} triangles in blocks, the header counts {header.primitive_count}",
            ROOT_UNIT,
            NODE_BOX_FP32,
        )
    for i in np.flatnonzero(rows.geometry >= header.geometry_count)[:PER_CHECK]:
        c.leaf_fault(f"geometry {rows.geometry[i]} of {header.geometry_count}", int(rows.block[i]))
    if split:
        same = (blocks[rows.block[order[1:]]] == blocks[rows.block[order[:-1]]]).all(axis=1)
        twice &= ~same | (rows.block[order[1:]] == rows.block[order[:-1]])
    for i in order[1:][twice][:PER_CHECK]:
        c.leaf_fault(
            f"primitive {rows.primitive[i]} of geometry {rows.geometry[i]} a second time",
            int(rows.block[i]),
        )
    leaf_bounds = empty_bounds(header.leaf_count)
    if len(rows.block):
        boxes = triangle_bounds(np.where(finite[:, None, None], rows.positions, np.float32(0)))
        first = np.flatnonzero(np.r_[True, rows.block[1:] != rows.block[:-1]])
        leaf_bounds[:, 0] = np.minimum.reduceat(boxes[:, 0], first, axis=0)
        leaf_bounds[:, 1] = np.maximum.reduceat(boxes[:, 1], first, axis=0)
    if split and finite.all():
        _check_cover(c, nodes, rows, leaf_bounds)
    return check_structure(c, nodes, leaf_bounds)


def _check_cover(c: Container, nodes: Nodes, rows: TriangleRows, leaf_bounds: F32) -> None:
    """The boxes of all references to a triangle cover it; what a reference's box leaves out is
    then no fault, so `leaf_bounds` of repeated blocks are cut to their boxes."""
    boxes = _reached_boxes(nodes, len(leaf_bounds))
    order = np.lexsort((rows.block, rows.primitive, rows.geometry))
    same = (rows.geometry[order][1:] == rows.geometry[order][:-1]) & (
        rows.primitive[order][1:] == rows.primitive[order][:-1]
    )
    first = np.flatnonzero(np.r_[True, ~same])
    count = np.diff(np.append(first, len(order)))
    first, count = first[count > 1], count[count > 1]
    left = uncovered(rows.positions[order[first]], boxes[rows.block[order]], first, count)
    for i in np.flatnonzero(left > TOLERANCE)[:PER_CHECK]:
        row = int(order[first[i]])
        c.leaf_fault(
            f"the boxes of {count[i]} references leave {left[i]:.2g} of primitive "
            f"{rows.primitive[row]} of geometry {rows.geometry[row]} out",
            int(rows.block[row]),
        )
    repeated = np.unique(rows.block[order][np.r_[False, same] | np.r_[same, False]])
    np.maximum(leaf_bounds[repeated, 0], boxes[repeated, 0], out=boxes[repeated, 0])
    np.minimum(leaf_bounds[repeated, 1], boxes[repeated, 1], out=boxes[repeated, 1])
    leaf_bounds[repeated] = boxes[repeated]


def _reached_boxes(nodes: Nodes, leaf_count: int) -> F32:
    """[leaves, 2, 3] what of space a traversal can come to each leaf in: its own box and all
    above it (an FP16 node's may be the larger one)."""
    above = np.empty((len(nodes.unit), 2, 3), np.float32)
    above[0] = [[-np.inf] * 3, [np.inf] * 3]
    reached = empty_bounds(leaf_count)
    for level in nodes.levels:
        low = np.fmax(nodes.boxes[level, :, 0], above[level, None, 0])
        high = np.fmin(nodes.boxes[level, :, 1], above[level, None, 1])
        children = nodes.children[level]
        boxes = np.stack([low, high], axis=2)
        inner, leaf = children >= 0, (children < 0) & (children != EMPTY)
        above[children[inner]] = boxes[inner]
        reached[~children[leaf]] = boxes[leaf]
    return reached


def _check_fan_table(c: Container) -> U32 | None:
    """[leaves, 4] ids of fans; None without fans, or where the table cannot be followed. A sound
    table is the one that would be written for what it says."""
    try:
        ids = unpack_fan_table(c.units.reshape(-1), c.header)
    except (ValueError, IndexError):
        ids = None
        c.header_fault("the fan table leads out of the container")
    if ids is None:
        return None
    fans = ids[:, 0] != INVALID_POINTER
    if int(fans.sum()) != c.header.fan_count:
        c.header_fault(f"the table has {fans.sum()} fans, the header counts {c.header.fan_count}")
        return ids
    table = c.units[c.header.fan_unit :].reshape(-1)
    for i in np.flatnonzero(table != pack_fan_table(ids))[:PER_CHECK]:
        unit = c.header.fan_unit + int(i) // UNIT_WORDS
        c.fault(f"word {i} of the fan table is 0x{table[i]:x}", unit, NODE_TRIANGLE_2)
    for leaf in np.flatnonzero(fans & (ids[:, 1:3] == INVALID_POINTER).any(axis=1))[:PER_CHECK]:
        c.leaf_fault("a fan without the id of its second or third triangle", int(leaf), 2)
    return ids


def _check_tlas(
    c: Container, bvh: SceneBvh, blas_bounds: F32, headers: list[Header | None]
) -> None:
    nodes = walk(c)
    count = c.header.leaf_count
    for name, stated, true in (
        ("instances", c.header.primitive_count, count),
        ("geometries", c.header.geometry_count, 0),
    ):
        if stated != true:
            c.header_fault(f"the header counts {stated} {name}, there are {true}")
    rows = c.units[c.header.leaf_unit :].reshape(count, c.leaf_units * UNIT_WORDS)
    bases = bvh.blas_bases.astype(np.int64)
    base = rows[:, INSTANCE_BLAS_BASE_WORD].astype(np.int64) * UNIT_BYTES
    pointer = rows[:, INSTANCE_BLAS_WORD].astype(np.int64)
    pointer |= rows[:, INSTANCE_BLAS_WORD + 1].astype(np.int64) << 32
    # A BLAS that was built anew stands behind those of higher numbers.
    order = np.argsort(bases)
    which = np.searchsorted(bases, base, sorter=order)
    known = which < len(bases)
    which[known] = order[which[known]]
    known[known] = bases[which[known]] == base[known]
    ids = rows[:, INSTANCE_ID_WORD].astype(np.int64)
    leaf_bounds = empty_bounds(count)
    matrices = np.ascontiguousarray(rows[:, INSTANCE_WORLD_TO_OBJECT_WORD:]).view(np.float32)
    backward = matrices[:, :12].reshape(-1, 3, 4)
    forward_at = INSTANCE_OBJECT_TO_WORLD_WORD - INSTANCE_WORLD_TO_OBJECT_WORD
    forward = matrices[:, forward_at : forward_at + 12].reshape(-1, 3, 4)
    sound = known & _inverse(backward, forward)
    for i in np.flatnonzero(~known)[:PER_CHECK]:
        c.leaf_fault(f"BLAS base {base[i]} is no BLAS of this scene", int(i))
    for i in np.flatnonzero(known & ~sound)[:PER_CHECK]:
        c.leaf_fault("its two matrices are not inverse to each other", int(i))
    for i in np.flatnonzero(pointer != ((base + HEADER_BYTES) >> 3 | NODE_BOX_FP32))[:PER_CHECK]:
        c.leaf_fault(f"BLAS pointer 0x{pointer[i]:x} is not the root of its base", int(i))
    known_ids, uses = np.unique(ids, return_counts=True)
    unique = np.isin(ids, known_ids[uses == 1])
    for i in range(count):
        if ids[i] >= len(bvh.instances) or not unique[i]:
            c.leaf_fault(f"instance id {ids[i]} is unknown or used twice", i)
            continue
        instance = bvh.instances[int(ids[i])]
        custom = instance.custom_index | instance.mask << INSTANCE_MASK_SHIFT
        flags = instance.first_object | pack_instance_flags(instance.flags)
        header = headers[int(which[i])] if known[i] else None
        if known[i] and which[i] != instance.blas:
            c.leaf_fault(f"points to BLAS {which[i]}, the scene says {instance.blas}", i)
        if int(rows[i, INSTANCE_CUSTOM_WORD]) != custom:
            c.leaf_fault("mask or custom index is not the scene's", i)
        if int(rows[i, INSTANCE_OBJECT_WORD]) != flags:
            c.leaf_fault("first object or flags are not the scene's", i)
        if header and int(rows[i, INSTANCE_GEOMETRY_COUNT_WORD]) != header.geometry_count:
            c.leaf_fault("geometry count is not its BLAS's", i)
    present = set(ids.tolist())
    for i, instance in enumerate(bvh.instances):
        header = headers[instance.blas]
        if header and header.leaf_count and i not in present:
            c.fault(f"instance {i} '{instance.name}' has no node", ROOT_UNIT, NODE_BOX_FP32)
    # A BLAS whose own bounds cannot be used has its fault already; its box is not checked here.
    usable = sound.copy()
    usable[sound] = np.isfinite(blas_bounds[which[sound]]).all(axis=(1, 2))
    try:
        leaf_bounds[usable] = world_bounds(
            blas_bounds[which[usable]], forward[usable], backward[usable]
        )
    except UserError as error:
        c.fault(str(error), ROOT_UNIT, NODE_BOX_FP32)
    check_structure(c, nodes, leaf_bounds)


def _inverse(backward: F32, forward: F32) -> Mask:
    """[n] whether the pairs of 3x4 matrices undo each other as far as float32 can tell."""
    finite = np.isfinite(backward).all(axis=(1, 2)) & np.isfinite(forward).all(axis=(1, 2))
    a = np.zeros((len(backward), 4, 4))
    b = np.zeros_like(a)
    a[:, :3], b[:, :3] = backward, forward
    a[:, 3, 3] = b[:, 3, 3] = 1.0
    a[~finite] = b[~finite] = 0.0
    error = np.abs(a @ b - np.eye(4))
    close = (error <= INVERSE_TOLERANCE * (np.abs(a) @ np.abs(b))).all(axis=(1, 2))
    return np.asarray(finite & close)
