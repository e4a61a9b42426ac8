"""PLOC: merge what is nearest along a space-filling curve (Meister and Bittner 2018).

This is the build on the CPU, made of the NumPy twins of the stages that `bvh.gpu.ploc` dispatches,
so the tree is the GPU's, node for node. The method is described in `bvh/gpu/ploc_stages.py`.
"""

from dataclasses import dataclass

import numpy as np

from bvh.gpu.build_records import key_words
from bvh.gpu.ploc_stages import (
    CHUNK,
    CLUSTER,
    MOST_RADIUS,
    chunk_count,
    dispatches,
    make_parameters,
    ploc_leaves,
    ploc_rounds,
)
from bvh.gpu.sorted_boxes import sort_boxes
from bvh.tree import EMPTY, Bounds, Tree, empty_bounds


@dataclass(frozen=True, slots=True)
class PlocConfig:
    """`radius` clusters on either side are looked at (8, or 16 for quality); the order comes from
    codes of `grid_bits` an axis and `size_bits` (at most as many) of the box's size, up to 31 of
    which sort in half the time."""

    radius: int = 8
    grid_bits: int = 9
    size_bits: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.radius <= MOST_RADIUS:
            raise ValueError(f"a radius of {self.radius}, it may be 1 to {MOST_RADIUS}")
        if not (0 <= self.size_bits <= self.grid_bits and 1 <= self.grid_bits <= 21):
            raise ValueError(f"codes of {self.grid_bits} bits an axis, {self.size_bits} of size")
        if 3 * self.grid_bits + self.size_bits > 63:
            raise ValueError(f"codes of {3 * self.grid_bits + self.size_bits} bits, a key holds 63")

    @property
    def key_words(self) -> int:
        return key_words(self.grid_bits, self.size_bits)


def build(bounds: Bounds, config: PlocConfig, capacity: int | None = None) -> Tree:
    """Binary tree over finite boxes `[n, 2, 3]`, one primitive a leaf. The GPU encodes as many
    dispatches as its bound on the boxes, `capacity`, may need; which of them are forced shows in
    the tree only where clusters merge too slowly."""
    count = len(bounds)
    if not count:
        return Tree(np.full((1, 2), EMPTY, np.int32), empty_bounds(1))
    _, state, _, payload = sort_boxes(bounds, config.grid_bits, config.size_bits)
    boxes = np.ascontiguousarray(bounds, np.float32).reshape(-1)
    nodes = max(count - 1, 1)
    children = np.empty(2 * nodes, np.int32)
    node_bounds = np.empty(6 * nodes, np.float32)
    zero_parent = np.zeros(1, np.uint32)
    chunks = chunk_count(count)
    counts, next_counts = np.zeros((2, 1 + chunks), np.uint32)
    clusters, next_clusters = np.empty((2, CHUNK * chunks), CLUSTER.dtype)
    ploc_leaves(state, boxes, payload, counts, clusters)
    for forced in dispatches(count if capacity is None else capacity):
        ploc_rounds(
            make_parameters(forced),
            counts,
            clusters,
            next_counts,
            next_clusters,
            children,
            node_bounds,
            zero_parent,
            radius=config.radius,
        )
        counts, next_counts = next_counts, counts
        clusters, next_clusters = next_clusters, clusters
    return Tree(children.reshape(-1, 2), node_bounds.reshape(-1, 2, 3))
