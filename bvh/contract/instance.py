"""Entering one of our instance nodes (ledger: instance.ours), after a user node was returned.

The instruction says nothing about its bytes; a shader reads them. World-space origin and
direction become object space in float32, as ((m0 x + m1 y) + m2 z) + m3, without renormalising.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract import descriptor as descriptors
from bvh.contract.intersect import Status
from bvh.contract.memory import Access, GuestMemory
from bvh.contract.pointer import TYPE_BITS, GuestAddress, NodePointer

F32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Entry:
    """`root` is relative to `descriptor.base`, which is the BLAS container's."""

    descriptor: descriptors.Descriptor
    root: NodePointer
    origin: F32  # [3]
    direction: F32  # [3]
    instance: int


def enter_instance(
    memory: GuestMemory,
    scene: descriptors.Descriptor,
    address: GuestAddress,
    origin: F32,
    direction: F32,
    mask: int,
) -> Entry | Status | None:
    """Where the ray goes on, why the node cannot be entered, or None if the mask says no."""
    second = np.uint64(address + layout.UNIT_BYTES)
    blocks, access = memory.load_blocks(np.array([np.uint64(address), second]))
    if (access == Access.INVALID).any():
        return Status.INVALID_ADDRESS
    if access.any():
        return Status.UNAVAILABLE
    node = blocks.reshape(-1)
    if not int(node[layout.INSTANCE_CUSTOM_WORD]) >> layout.INSTANCE_MASK_SHIFT & mask:
        return None
    base = int(node[layout.INSTANCE_BLAS_BASE_WORD]) * layout.UNIT_BYTES
    low, high = node[layout.INSTANCE_BLAS_WORD], node[layout.INSTANCE_BLAS_WORD + 1]
    root = (int(low) | int(high) << 32) - (base >> TYPE_BITS)
    last_unit = scene.last_unit - base // layout.UNIT_BYTES
    misplaced = base % layout.BASE_ALIGN_BYTES or last_unit < 0
    if misplaced or not 0 <= root < layout.INVALID_POINTER:
        return Status.OUT_OF_RANGE
    first = layout.INSTANCE_WORLD_TO_OBJECT_WORD
    m = node[first : first + 12].view(np.float32).reshape(3, 4)
    with np.errstate(all="ignore"):
        linear = (m[:, 0] * direction[0] + m[:, 1] * direction[1]) + m[:, 2] * direction[2]
        point = ((m[:, 0] * origin[0] + m[:, 1] * origin[1]) + m[:, 2] * origin[2]) + m[:, 3]
    return Entry(
        descriptors.Descriptor(
            GuestAddress(scene.base + base), last_unit, scene.growth, scene.sort
        ),
        NodePointer(root),
        point,
        linear,
        int(node[layout.INSTANCE_ID_WORD]),
    )
