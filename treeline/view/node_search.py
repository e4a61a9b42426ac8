"""Where in the structure a triangle lies, from its ids alone."""

from dataclasses import replace

import numpy as np

from bvh.fan_blocks import unpack_fan_table
from bvh.layout import (
    NODE_PROCEDURAL,
    NODE_TRIANGLE_0,
    TRIANGLE_PRIMITIVE_0_WORD,
    UNIT_BYTES,
    UNIT_WORDS,
    pack_pointer,
    unpack_pointer,
)
from treeline.view.node_ref import NodeRef
from treeline.view.structure_tree import StructureTree


def find_triangle(
    tree: StructureTree, instance: int, geometry: int, primitive: int
) -> NodeRef | None:
    """A triangle, or sphere, of the BLAS that the instance places, in the first block that holds
    it. None where none does."""
    bvh = tree.bvh
    blas = bvh.instances[instance].blas
    words, header = bvh.blas_words(blas), tree.header(blas)
    blocks = words.reshape(-1, UNIT_WORDS)[header.leaf_unit :][: header.leaf_count]
    fan_ids = unpack_fan_table(words, header)
    # A fan's fifth vertex may look like the id: these are candidates only.
    tails = blocks[:, TRIANGLE_PRIMITIVE_0_WORD : TRIANGLE_PRIMITIVE_0_WORD + 2]
    likely = (tails == primitive).any(axis=1)
    if fan_ids is not None:
        likely |= (fan_ids == primitive).any(axis=1)
    kind = NODE_PROCEDURAL if header.sphere_count else NODE_TRIANGLE_0
    for leaf in np.flatnonzero(likely).tolist():
        # Only the parent's pointer says how many triangles the block holds.
        offset = (header.leaf_unit + leaf) * UNIT_BYTES
        parent = tree.parent(NodeRef(blas, pack_pointer(offset, kind), instance))
        for node in tree.children(parent) if parent else ():
            if unpack_pointer(node.pointer)[0] != offset:
                continue
            if header.sphere_count:
                sphere = tree.sphere(node)
                if (int(sphere.geometry[0]), int(sphere.primitive[0])) == (geometry, primitive):
                    return node
                continue
            held = tree.triangles(node)
            same = np.flatnonzero((held.primitive == primitive) & (held.geometry == geometry))
            if len(same):
                return replace(node, triangle=int(same[0]))
    return None
