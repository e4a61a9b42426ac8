"""What a triangle crossing means: original barycentrics, ids, opacity, facing.

Reads the tail of triangle blocks and the flag bits of instance nodes for the oracle. Precedence of
opacity: ray flags, then the instance's, then the geometry's; of two opposite flags on one level
NON_OPAQUE wins. Facing is that of the original triangle's winding in object space; the instance's
FLIP_FACING exchanges front and back, its DISABLE_FACING_CULL beats the ray's culling.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.fan_blocks import find_fan_rows
from bvh.rays import RayFlags
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Crossings with what a hit reports, one entry each."""

    u: F32  # weight of the original triangle's vertex 1
    v: F32  # weight of its vertex 2
    object: U32
    primitive: U32
    opaque: Flags
    culled: Flags


def read_candidates(
    words: U32,
    base: Index,
    address: Index,
    node: U32,
    kind: Index,
    weights: F32,
    front: Flags,
    object_word: U32,
    flags: RayFlags,
) -> Candidates:
    """Crossings of the triangles of type `kind` in the blocks at word `address`, which pointers
    `node` led to, of the containers at word `base`. Of a sphere, whose tail reads as a block's,
    entering is 0 and leaving 1, and the weights of slots 1 and 2 are the place on it.

    `weights` [3, h] and `front` [h] belong to the slots in their order; `object_word` [h] is
    INSTANCE_OBJECT_WORD of the instance each ray is in.
    """
    flag = words[address + layout.TRIANGLE_FLAGS_WORD] >> (8 * kind).astype(np.uint32)
    i = (flag & layout.FLAG_I_MASK).astype(np.int64)
    j = (flag >> layout.FLAG_J_SHIFT & layout.FLAG_I_MASK).astype(np.int64)
    # Source 3 names no slot: weight 0, as the emitter returns.
    padded = np.concatenate([weights, np.zeros((1, kind.size), np.float32)])
    column = np.arange(kind.size)
    tail = words[address + layout.TRIANGLE_GEOMETRY_WORD]
    primitive = words[address + layout.TRIANGLE_PRIMITIVE_0_WORD + np.minimum(kind, 1)]
    pointed = node & 7
    fan = np.flatnonzero((pointed == layout.NODE_TRIANGLE_2) | (pointed == layout.NODE_TRIANGLE_3))
    if fan.size:
        tail[fan], primitive[fan] = _read_fans(words, base[fan], address[fan], kind[fan])
    opaque = is_opaque(flags, tail, object_word)
    return Candidates(
        u=padded[i, column],
        v=padded[j, column],
        object=(object_word & layout.INSTANCE_INDEX_MASK) + (tail & layout.GEOMETRY_INDEX_MASK),
        primitive=primitive,
        opaque=opaque,
        # An odd order of slots reverses the winding.
        culled=is_culled(flags, front ^ ((j - i) % 3 == 2), opaque, object_word),
    )


def _read_fans(words: U32, base: Index, address: Index, kind: Index) -> tuple[U32, U32]:
    """(geometry word, primitive) of triangles of fans. Where the container has no table of ids, as
    in hand-made bytes: geometry 0, opaque, the type as primitive."""
    tail = layout.unpack_fan_geometry(words[address + layout.TRIANGLE_FLAGS_WORD])
    primitive = kind.astype(np.uint32)
    try:
        row = find_fan_rows(words, base, address)
        listed = row >= 0
        primitive[listed] = words[row[listed] + kind[listed]]
    except IndexError:
        raise UserError("a fan's ids lie beyond the BVH") from None
    return np.where(listed, tail, np.uint32(layout.GEOMETRY_OPAQUE)), primitive


def is_opaque(flags: RayFlags, geometry_word: U32, object_word: U32) -> Flags:
    """Whether each candidate skips the alpha test."""
    if flags & RayFlags.NON_OPAQUE:
        return np.zeros(len(geometry_word), np.bool_)
    if flags & RayFlags.OPAQUE:
        return np.ones(len(geometry_word), np.bool_)
    own = (geometry_word & np.uint32(layout.GEOMETRY_OPAQUE)) != 0
    forced = (object_word & np.uint32(layout.INSTANCE_FORCE_OPAQUE)) != 0
    allowed = (object_word & np.uint32(layout.INSTANCE_NO_FORCE_NON_OPAQUE)) != 0
    return np.asarray((own | forced) & allowed)


def is_culled(flags: RayFlags, front: Flags, opaque: Flags, object_word: U32) -> Flags:
    """Whether the ray's flags drop each candidate."""
    culled = np.zeros(len(front), np.bool_)
    if flags & RayFlags.CULL_OPAQUE:
        culled |= opaque
    if flags & RayFlags.CULL_NON_OPAQUE:
        culled |= ~opaque
    if flags & (RayFlags.CULL_BACK_FACING | RayFlags.CULL_FRONT_FACING):
        seen = front ^ ((object_word & np.uint32(layout.INSTANCE_FLIP_FACING)) != 0)
        facing = np.zeros(len(front), np.bool_)
        if flags & RayFlags.CULL_BACK_FACING:
            facing |= ~seen
        if flags & RayFlags.CULL_FRONT_FACING:
            facing |= seen
        culled |= facing & ((object_word & np.uint32(layout.INSTANCE_DISABLE_FACING_CULL)) == 0)
    return culled
