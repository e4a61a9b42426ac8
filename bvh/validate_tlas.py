"""What `bvh.validate` checks of a TLAS: that its instance nodes are the scene's, and its boxes."""

import numpy as np
from numpy.typing import NDArray

from bvh.header import Header
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
    NODE_BOX_FP32,
    UNIT_BYTES,
    UNIT_WORDS,
    pack_instance_flags,
)
from bvh.scene_bvh import SceneBvh
from bvh.tlas import world_bounds
from bvh.tree import empty_bounds
from bvh.walk import PER_CHECK, ROOT_UNIT, Container, check_structure, walk
from engine.gpu.errors import UserError

F32 = NDArray[np.float32]
Mask = NDArray[np.bool_]

# Stored matrices are rounded to float32; the entries of their product may be off by that much of
# the sum of absolute products (2^-24 each, and the inverse of a rounded matrix once more).
INVERSE_TOLERANCE = 1e-6


def check_tlas(c: Container, bvh: SceneBvh, blas_bounds: F32, headers: list[Header | None]) -> None:
    """Puts what is wrong into `c.faults`. `blas_bounds` [n, 2, 3] and `headers` are of the BLASes;
    a header is None where its container cannot be read."""
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
