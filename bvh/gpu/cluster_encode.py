"""Guest bytes of the trees that `bvh.gpu.cluster_tree` leaves, in one dispatch.

Every inner node walks to its root by parent links and back down by what each node gives its
children, which tells whether it is a wide node and where its bytes go; a leaf only counts the
leaves to its left. Nobody reads what the dispatch writes. The container is that of `bvh.encode`:
wide nodes depth first, then leaves in the same order. One that would end beyond `limit_unit` is
not written at all.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.encode import encode, make_image
from bvh.gpu.cluster_node import slots_of
from bvh.gpu.cluster_records import HALF
from bvh.header import KIND_TLAS
from bvh.layout import (
    INVALID_POINTER,
    NODE_INSTANCE,
    NODE_TRIANGLE_0,
    NODE_TRIANGLE_1,
    TRIANGLE_GEOMETRY_WORD,
    TRIANGLE_PRIMITIVE_1_WORD,
    UNIT_BYTES,
    UNIT_WORDS,
)
from bvh.tree import Tree, depth_first, empty_bounds, leaf_slots

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Records = NDArray[Any]


def wide_tree(root: int, nodes: Records) -> tuple[Tree, NDArray[np.bool_]]:
    """The four-wide tree below inner node `root`, leaves numbered as its boxes are, and which of
    its nodes are FP16."""
    rows, binary, used = [], [], 1
    level = np.array([root], np.int64)
    while len(level):
        node = nodes[level]
        slots = slots_of(node["left"], node["right"], node["shares"], nodes)
        inner = slots >= 0
        below = slots[inner].astype(np.int64)
        slots[inner] = used + np.arange(len(below))
        used += len(below)
        rows.append(slots)
        binary.append(level)
        level = below
    record = nodes[np.concatenate(binary)]
    bounds = np.stack([record["low"], record["high"]], axis=1)
    if not record["leaves"][0]:
        bounds = empty_bounds(1)
    half = (record["shares"] & HALF) != 0
    half[0] = False
    return Tree(np.concatenate(rows), bounds), np.asarray(half)


def cluster_encode(
    parameters: Records,
    segments: Records,
    trees: Records,
    nodes: Records,
    leaf_parents: U32,
    boxes: F32,
    leaves: U32,
    words: U32,
    parents: U32,
) -> None:
    """Twin of cluster_encode.wgsl, by way of `bvh.encode`."""
    p = parameters[0]
    kind, align = int(p["kind"]), int(p["align_units"])
    one_tree = kind == KIND_TLAS
    leaf_words = UNIT_WORDS * int(p["leaf_units"])
    records = leaves[: len(leaves) // leaf_words * leaf_words].reshape(-1, leaf_words)
    every_box = boxes[: 6 * (len(boxes) // 6)].reshape(-1, 2, 3)
    roots = [int(p["top"] * p["segments"])] if one_tree else range(int(p["segments"]))
    for tree_number, at in enumerate(roots):
        tree, half = wide_tree(int(segments["root"][at]), nodes)
        used = np.sort(~tree.children[leaf_slots(tree.children)])
        first = int(used[0]) if len(used) else 0
        leaf = leaf_slots(tree.children)
        tree.children[leaf] += np.int32(first)  # ~(box - first)
        mine = records[first : first + len(used)]
        types = np.full(len(mine), NODE_INSTANCE, np.uint8)
        record = trees[tree_number]
        primitives = len(mine)
        if not one_tree:
            pair = mine[:, TRIANGLE_PRIMITIVE_1_WORD] != INVALID_POINTER
            types = np.where(pair, NODE_TRIANGLE_1, NODE_TRIANGLE_0).astype(np.uint8)
            primitives = int(record["primitives"])
            mine = mine.copy()
            mine[:, TRIANGLE_GEOMETRY_WORD] -= record["first_geometry"]
        image = make_image(
            tree,
            every_box[first : first + len(used)],
            mine,
            types,
            kind=kind,
            nodes="fp32",
            primitive_count=primitives,
            geometry_count=int(record["geometries"]),
        )
        order = depth_first(tree.children)[0]
        in_order = np.empty_like(half)
        in_order[order] = half
        base = int(record["base_unit"])
        image = replace(image, half=in_order, base_bytes=UNIT_BYTES * base)
        container, links = encode(image)
        size = -(-len(links) // align) * align
        if base + size > record["limit_unit"]:
            continue
        out = words[UNIT_WORDS * base : UNIT_WORDS * (base + size)]
        out[: len(container)] = container
        out[len(container) :] = 0
        parents[base : base + size] = INVALID_POINTER
        parents[base : base + len(links)] = links
