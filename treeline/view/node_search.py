"""Where in the structure something lies, from the bytes and the parent links alone."""

import numpy as np
from numpy.typing import NDArray

from bvh.decode import decode_triangles
from bvh.fan_blocks import unpack_fan_table
from bvh.header import unpack_header
from bvh.layout import (
    BOX_WIDTH,
    HEADER_BYTES,
    INSTANCE_ID_WORD,
    INVALID_POINTER,
    TRIANGLE_PRIMITIVE_0_WORD,
    UNIT_BYTES,
    UNIT_WORDS,
    unpack_pointer,
)
from bvh.scene_bvh import SceneBvh
from treeline.view.view_state import WHOLE_TLAS, NodeRef

U32 = NDArray[np.uint32]


def find_instance(bvh: SceneBvh, instance: int) -> NodeRef | None:
    """The instance's node in the TLAS, None where it has none."""
    header = unpack_header(bvh.words)
    units = bvh.tlas_words.reshape(-1, UNIT_WORDS)
    records = units[header.leaf_unit :][: 2 * header.leaf_count].reshape(-1, 2 * UNIT_WORDS)
    for row in np.flatnonzero(records[:, INSTANCE_ID_WORD] == instance):
        pointer = _pointer_to(bvh.tlas_words, bvh.parents, header.leaf_unit + 2 * int(row))
        if pointer is not None:
            return NodeRef(WHOLE_TLAS, pointer)
    return None


def find_leaf(bvh: SceneBvh, instance: int, geometry: int, primitive: int) -> NodeRef | None:
    """The first leaf that holds the triangle, in the BLAS that the instance places."""
    blas = bvh.instances[instance].blas
    words = bvh.blas_words(blas)
    header = unpack_header(words)
    parents = bvh.parents[int(bvh.blas_bases[blas]) // UNIT_BYTES :]
    blocks = words.reshape(-1, UNIT_WORDS)[header.leaf_unit :][: header.leaf_count]
    fan_ids = unpack_fan_table(words, header)
    # A fan's fifth vertex may look like the id: candidates only, which are then decoded.
    tails = blocks[:, TRIANGLE_PRIMITIVE_0_WORD : TRIANGLE_PRIMITIVE_0_WORD + 2]
    likely = (tails == primitive).any(axis=1)
    if fan_ids is not None:
        likely |= (fan_ids == primitive).any(axis=1)
    for leaf in np.flatnonzero(likely).tolist():
        pointer = _pointer_to(words, parents, header.leaf_unit + leaf)
        if pointer is None:
            continue
        types = np.array([pointer & 7], np.uint8)
        rows = None if fan_ids is None else fan_ids[leaf : leaf + 1]
        held = decode_triangles(blocks[leaf : leaf + 1], types, rows)
        if ((held.primitive == primitive) & (held.geometry == geometry)).any():
            return NodeRef(blas, pointer, instance)
    return None


def _pointer_to(words: U32, parents: U32, unit: int) -> int | None:
    """The pointer that the parent of the node at `unit` of a container holds."""
    parent = int(parents[unit])
    if parent == INVALID_POINTER:
        return None
    first = unpack_pointer(parent)[0] // 4
    children = words[first : first + BOX_WIDTH]
    same = np.flatnonzero(unpack_pointer(children)[0] == unit * UNIT_BYTES)
    return int(children[same[0]]) if len(same) else None


def link_path(bvh: SceneBvh, node: NodeRef) -> tuple[NodeRef, ...]:
    """From the root of the node's container down to it, by the parent links."""
    base = 0 if node.container == WHOLE_TLAS else int(bvh.blas_bases[node.container])
    path = [node]
    unit = unpack_pointer(node.pointer)[0] // UNIT_BYTES
    while unit != HEADER_BYTES // UNIT_BYTES:
        parent = int(bvh.parents[base // UNIT_BYTES + unit])
        path.append(NodeRef(node.container, parent, node.instance))
        unit = unpack_pointer(parent)[0] // UNIT_BYTES
    return tuple(reversed(path))


def path_by_links(
    bvh: SceneBvh, instance: int, geometry: int, primitive: int
) -> tuple[NodeRef, ...]:
    """From the TLAS's root through the instance to the triangle's leaf; empty where the structure
    does not hold it."""
    node, leaf = find_instance(bvh, instance), find_leaf(bvh, instance, geometry, primitive)
    if node is None or leaf is None:
        return ()
    return (*link_path(bvh, node), *link_path(bvh, leaf))
