"""Entering an instance node: the oracle's reading of the 128 bytes and the ray in object space.

The origin is transformed as a point, the direction as a vector, in float32 as
((m0 x + m1 y) + m2 z) + m3 with each operation rounded. Nothing is renormalised, so t keeps its
unit across the instance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entry:
    """Where m rays continue."""

    base: Index  # word of the BLAS container's byte 0
    root: U32  # node pointer of its root, relative to the container
    origin: F32  # [3, m] object space
    direction: F32  # [3, m]
    instance: U32  # instance id
    object_word: U32  # first object and flags


def passes_mask(words: U32, address: Index, mask: int) -> NDArray[np.bool_]:
    """Whether each instance's mask shares a bit with the ray's."""
    own = words[address + layout.INSTANCE_CUSTOM_WORD] >> layout.INSTANCE_MASK_SHIFT
    return np.asarray((own & np.uint32(mask)) != 0)


def enter_instances(words: U32, address: Index, origin: F32, direction: F32) -> Entry:
    """World-space rays [3, m] into the instance nodes at word `address` [m]. UserError for a BLAS
    root pointer that is not a node of the BLAS that the instance names."""
    # All 64 bits of the root pointer count: a narrowed one would name another node.
    low = words[address + layout.INSTANCE_BLAS_WORD].astype(np.uint64)
    high = words[address + layout.INSTANCE_BLAS_WORD + 1].astype(np.uint64)
    root = low | high << np.uint64(32)
    units = words[address + layout.INSTANCE_BLAS_BASE_WORD].astype(np.uint64)
    # Wraps to a huge number where the root lies before the base.
    local = root - units * np.uint64(layout.UNIT_BYTES >> 3)
    bad = (local >= np.uint64(layout.INVALID_POINTER)) | ((local & np.uint64(7)) > 5)
    if bad.any():
        name = f"0x{int(root[bad.argmax()]):016x}"
        raise UserError(f"BLAS root pointer {name} names no node of the instance's BLAS")
    cells = address + layout.INSTANCE_WORLD_TO_OBJECT_WORD + np.arange(12)[:, None]
    m = words.view(np.float32).take(cells).reshape(3, 4, address.size)
    return Entry(
        base=units.astype(np.int64) * layout.UNIT_WORDS,
        root=local.astype(np.uint32),
        origin=((m[:, 0] * origin[0] + m[:, 1] * origin[1]) + m[:, 2] * origin[2]) + m[:, 3],
        direction=(m[:, 0] * direction[0] + m[:, 1] * direction[1]) + m[:, 2] * direction[2],
        instance=words[address + layout.INSTANCE_ID_WORD],
        object_word=words[address + layout.INSTANCE_OBJECT_WORD],
    )
