"""Trees that one workgroup builds: PLOC over a segment of boxes in Morton order, collapse included.

Every cluster names the neighbour, up to `radius` places away, with which its common box is
smallest; mutual choices become nodes, and what is left closes up (Meister and Bittner 2018,
"Parallel Locally-Ordered Clustering for Bounding Volume Hierarchy Construction"). All rounds
happen in one dispatch, in workgroup memory. More boxes than one workgroup takes are cut into
segments that follow each other; each is merged down to a few clusters, and one more workgroup
goes on from those of all segments. That makes two dispatches for any number of boxes.

Once a workgroup has all its nodes, it goes up from the leaves round by round, again in workgroup
memory: every node knows then the best way to cut its subtree into wide nodes (the dynamic
programme of `bvh.transforms.collapse.collapse_best`, in float32) and how many bytes, nodes, leaves
and stack entries that takes. A subtree's record has the slot of its leftmost cluster, so that
rounds and sweeps need room for as many as there were clusters, and no other workgroup memory. A
round has three barriers, a level of the sweep one; neither waits for storage. The place of any
node in the depth-first order is then a walk to the root and back, so that the encoder
(`bvh.gpu.cluster_encode`) needs no order of its own and no sweep by levels.

Depth: a round adds a level at most. Once a tree could not stay within `max_levels` otherwise,
neighbours are paired blindly, which halves the clusters a round. Stack: a wide node that would
need more than its height in binary levels and SPARE_ENTRIES keeps its two binary children.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.cluster_node import areas, child_boxes, merge
from bvh.tree import EMPTY

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Records = NDArray[Any]


def _nearest(box: F32, radius: int) -> I64:
    """[m] the neighbour of each cluster, itself where there is none."""
    m = len(box)
    i = np.arange(m)
    found = i.copy()
    least = np.full(m, 0xFFFFFFFF, np.uint32)
    for step in [*range(-min(radius, m - 1), 0), *range(1, min(radius, m - 1) + 1)]:
        rows = i[max(0, -step) : m - max(0, step)]
        j = rows + step
        both = np.stack(
            [np.minimum(box[rows, 0], box[j, 0]), np.maximum(box[rows, 1], box[j, 1])], axis=1
        )
        size = areas(both).view(np.uint32)
        tie = (size == least[rows]) & ((rows ^ j) < (rows ^ found[rows]))
        better = (size < least[rows]) | tie
        least[rows[better]] = size[better]
        found[rows[better]] = j[better]
    return found


def cluster_tree(
    parameters: Records,
    order: U32,
    boxes: F32,
    segments: Records,
    nodes: Records,
    leaf_parents: U32,
    roots: I32,
) -> None:
    """Twin of cluster_tree.wgsl."""
    p = parameters[0]
    number = int(p["segments"])
    for at in [number] if p["top"] else range(number):
        segment = segments[at]
        first, count = int(segment["first"]), int(segment["count"])
        levels = 0
        if p["top"]:
            below = segments[:number]
            parts = [roots[int(s["first"]) : int(s["first"]) + int(s["roots"])] for s in below]
            clusters = np.concatenate([np.zeros(0, np.int32), *parts])
            levels = int(below["levels"].max(initial=0))
        else:
            clusters = ~order[first : first + count].astype(np.int32)
        base, created = first + at, 0
        box = child_boxes(clusters, nodes, boxes)

        def add(left: I32, right: I32, both: F32, at: int) -> I32:
            ids = at + np.arange(len(left))
            nodes[ids] = merge(left, right, both, nodes, boxes, int(p["node_format"]))
            for child in (left, right):
                inner = child >= 0
                nodes["parent"][child[inner]] = ids[inner]
                leaf = ~inner & (child != EMPTY)
                leaf_parents[~child[leaf]] = ids[leaf]
            return ids.astype(np.int32)

        while len(clusters) > p["roots"]:
            m = len(clusters)
            i = np.arange(m)
            if levels + 1 + (m - 1).bit_length() > p["max_levels"]:
                best = np.where((i ^ 1) < m, i ^ 1, i)
            else:
                best = _nearest(box, int(p["radius"]))
            mutual = (best != i) & (best[best] == i)
            lead = np.flatnonzero(mutual & (i < best))
            other = best[lead]
            box[lead, 0] = np.minimum(box[lead, 0], box[other, 0])
            box[lead, 1] = np.maximum(box[lead, 1], box[other, 1])
            clusters[lead] = add(clusters[lead], clusters[other], box[lead], base + created)
            created += len(lead)
            keep = ~mutual | (i < best)
            clusters, box = clusters[keep], box[keep]
            levels += 1
        left_over = len(clusters)
        if p["finish"] and not created and (not left_over or clusters[0] < 0):
            only = clusters if left_over else np.array([EMPTY], np.int32)
            both = box if left_over else _empty_box()
            clusters = add(only, np.array([EMPTY], np.int32), both, base)
            created, levels = 1, levels + 1
        roots[first : first + left_over] = clusters[:left_over]
        segments[at : at + 1]["root"] = clusters[0] if len(clusters) else 0
        segments[at : at + 1]["roots"] = left_over
        segments[at : at + 1]["levels"] = levels
        segments[at : at + 1]["created"] = created


def _empty_box() -> F32:
    """As box.wgsl's empty_box: finite."""
    largest = np.finfo(np.float32).max
    return np.array([[[largest] * 3, [-largest] * 3]], np.float32)
