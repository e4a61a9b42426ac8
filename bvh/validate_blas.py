"""What `bvh.validate` checks of a BLAS: its blocks or spheres, fans, references, boxes."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from bvh.cover import TOLERANCE, uncovered
from bvh.decode import TriangleRows, decode_triangles, leaf_records
from bvh.fan_blocks import pack_fan_table, unpack_fan_table
from bvh.layout import (
    INVALID_POINTER,
    NODE_BOX_FP32,
    NODE_TRIANGLE_2,
    ROTATION_NIBBLES,
    TRIANGLE_FLAGS_WORD,
    TRIANGLE_PRIMITIVE_1_WORD,
    UNIT_WORDS,
)
from bvh.spheres import decode_spheres, sphere_bounds, sphere_faults
from bvh.tree import EMPTY, empty_bounds
from bvh.triangles import triangle_bounds
from bvh.walk import PER_CHECK, ROOT_UNIT, Container, Nodes, check_structure, walk

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


def check_blas(c: Container) -> F32:
    """Puts what is wrong into `c.faults`. float32 [2, 3]: the box that its header states."""
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
