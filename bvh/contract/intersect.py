"""IMAGE_BVH_INTERSECT_RAY and IMAGE_BVH64_INTERSECT_RAY: READ THIS FIRST.

One instruction reads one node and returns four words: child pointers of a box node, or the
numerators of a triangle. It does not trace: the stack, the choice of the nearest hit, masks,
transforms and opacity belong to the shader around it.

    words = image_bvh_intersect_ray(memory, descriptor, node_pointer, extent,
                                    origin, direction, inverse_direction, rules)

Two rule sets. `chapter` is the helper that KytyPS5 ships: it checks the descriptor, the node
type, the bounds and the ray, and answers a refusal with reject words. `gpurt` is AMD's own
emulation: it knows no descriptor checks and accepts any ray. Whatever cannot be read gives the
reject words in both, and its `Status` says why; it is never taken for zeros.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract import descriptor as fields
from bvh.contract import pointer as pointers
from bvh.contract.box import intersect_boxes
from bvh.contract.cases import BLOCK_WORDS, Cases, Rules, make_cases
from bvh.contract.memory import Access, GuestMemory
from bvh.contract.triangle import MISS_T_DENOM, MISS_T_NUM, intersect_triangles
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Refused instructions: triangle types (either return mode), and all other types.
TRIANGLE_REJECT = (int(MISS_T_NUM), int(MISS_T_DENOM), layout.INVALID_POINTER, 0)
BOX_REJECT = (layout.INVALID_POINTER,) * 4


class Status(IntEnum):
    """Why an instruction returned what it did; the first that applies."""

    OK = 0
    USER_NODE = 1  # types 6 and 7 belong to software
    BAD_DESCRIPTOR = 2
    OUT_OF_RANGE = 3  # beyond the descriptor's size or the 48-bit address space
    BAD_RAY = 4
    UNAVAILABLE = 5  # a valid page that has not arrived
    INVALID_ADDRESS = 6  # no memory is declared there


@dataclass(frozen=True, slots=True)
class Result:
    words: U32  # [n, 4]
    status: I64  # [n] of Status


def image_bvh_intersect_ray(
    memory: GuestMemory,
    descriptor: Any,
    node_pointer: Any,
    extent: Any,
    origin: Any,
    direction: Any,
    inverse_direction: Any,
    rules: Rules = "chapter",
) -> U32:
    """Four words `[n, 4]`. descriptor `[4]` or `[n, 4]`, node_pointer `[n]` of 32 bits, extent
    `[n]` and the vectors `[n, 3]` as float32 or as uint32 bits."""
    if (np.asarray(node_pointer, np.uint64) >> np.uint64(32)).any():
        raise UserError("the 32-bit form takes 32-bit node pointers; use the 64-bit form")
    return image_bvh64_intersect_ray(
        memory, descriptor, node_pointer, extent, origin, direction, inverse_direction, rules
    )


def image_bvh64_intersect_ray(
    memory: GuestMemory,
    descriptor: Any,
    node_pointer: Any,
    extent: Any,
    origin: Any,
    direction: Any,
    inverse_direction: Any,
    rules: Rules = "chapter",
) -> U32:
    """The same with 64-bit node pointers: the high bits are part of the index."""
    none = np.empty((np.size(node_pointer), 0), np.uint32)
    cases = make_cases(
        descriptor, node_pointer, none, extent, origin, direction, inverse_direction, backed=0
    )
    return intersect(memory, cases, rules).words


def intersect(memory: GuestMemory, cases: Cases, rules: Rules) -> Result:
    """The instructions of `cases` with their nodes read from `memory` (its node words are not
    looked at). Nothing is loaded for an instruction that is refused."""
    status = check(cases, rules)
    address, needed = node_blocks(cases)
    node_words = np.zeros((len(cases), 2 * BLOCK_WORDS), np.uint32)
    for block in range(2):
        # The second half only where the first could be read.
        lanes = np.flatnonzero((status == Status.OK) & (needed > block))
        at = address[lanes] + np.uint64(block * layout.UNIT_BYTES)
        words, access = memory.load_blocks(at)
        node_words[lanes, block * BLOCK_WORDS : (block + 1) * BLOCK_WORDS] = words
        status[lanes[access == Access.UNAVAILABLE]] = Status.UNAVAILABLE
        status[lanes[access == Access.INVALID]] = Status.INVALID_ADDRESS
    return Result(_evaluate(replace(cases, node_words=node_words), status, rules), status)


def intersect_cases(cases: Cases, rules: Rules) -> Result:
    """The instructions of `cases` with the node words that they carry."""
    status = check(cases, rules)
    _, needed = node_blocks(cases)
    status[(status == Status.OK) & (cases.backed < needed)] = Status.UNAVAILABLE
    return Result(_evaluate(cases, status, rules), status)


def check(cases: Cases, rules: Rules) -> I64:
    """`Status` `[n]` before any byte is read."""
    pointer = pointers.join(cases.pointer_low, cases.pointer_high)
    kind = pointers.kinds(pointer)
    status = np.full(len(cases), Status.OK, np.int64)

    def refuse(where: Mask, why: Status) -> None:
        status[where & (status == Status.OK)] = why

    refuse(kind > layout.NODE_BOX_FP32, Status.USER_NODE)
    if rules == "gpurt":
        return status
    resource = fields.read_field(cases.descriptor, "type")
    refuse(np.asarray(resource != layout.DESCRIPTOR_TYPE), Status.BAD_DESCRIPTOR)
    last = pointers.indices(pointer) + (kind == layout.NODE_BOX_FP32).astype(np.uint64)
    refuse(last > fields.read_field(cases.descriptor, "last_unit"), Status.OUT_OF_RANGE)
    base = fields.read_field(cases.descriptor, "base") << np.uint64(fields.BASE_SHIFT)
    last_address = base + (last << np.uint64(pointers.UNIT_SHIFT))
    refuse(last_address >= np.uint64(pointers.ADDRESS_LIMIT), Status.OUT_OF_RANGE)
    vectors = np.concatenate([cases.direction, cases.inverse_direction], axis=1)
    rays = np.concatenate([cases.extent[:, None], cases.origin, vectors], axis=1).view(np.float32)
    bad = np.isnan(rays).any(1) | np.isinf(rays[:, 1:4]).any(1)
    refuse(np.asarray(bad), Status.BAD_RAY)
    return status


def reject_words(kind: I64) -> U32:
    """What a refused instruction returns, `[n, 4]`."""
    triangle = (kind <= layout.NODE_TRIANGLE_3)[:, None]
    return np.where(triangle, np.array(TRIANGLE_REJECT, np.uint32), np.array(BOX_REJECT, np.uint32))


def node_blocks(cases: Cases) -> tuple[U64, I64]:
    """Guest addresses `[n]` of the nodes, and how many 64-byte blocks each has (1 or 2)."""
    pointer = pointers.join(cases.pointer_low, cases.pointer_high)
    base = fields.read_field(cases.descriptor, "base") << np.uint64(fields.BASE_SHIFT)
    address = base + (pointers.indices(pointer) << np.uint64(pointers.UNIT_SHIFT))
    return address, np.where(pointers.kinds(pointer) == layout.NODE_BOX_FP32, 2, 1)


def _evaluate(cases: Cases, status: I64, rules: Rules) -> U32:
    if rules not in ("chapter", "gpurt"):
        raise UserError(f"unknown rule set '{rules}' (chapter or gpurt)")
    kind = (cases.pointer_low & np.uint32(pointers.TYPE_MASK)).astype(np.int64)
    words = reject_words(kind)
    ready = status == Status.OK
    lanes = np.flatnonzero(ready & (kind <= layout.NODE_TRIANGLE_3))
    if lanes.size:
        at = cases.take(lanes)
        mode = fields.read_field(at.descriptor, "return_mode").astype(np.uint32)
        words[lanes] = intersect_triangles(
            at.node_words,
            kind[lanes],
            at.origin.view(np.float32),
            at.direction.view(np.float32),
            mode,
            rules,
        )
    lanes = np.flatnonzero(ready & (kind > layout.NODE_TRIANGLE_3))
    if lanes.size:
        at = cases.take(lanes)
        words[lanes] = intersect_boxes(
            at.node_words,
            kind[lanes] == layout.NODE_BOX_FP16,
            at.extent.view(np.float32),
            at.origin.view(np.float32),
            at.inverse_direction.view(np.float32),
            fields.read_field(at.descriptor, "growth").astype(np.uint32),
            fields.read_field(at.descriptor, "sort") != 0,
            rules,
        )
    return words
