"""LBVH: sort boxes along a space-filling curve, take the radix tree of the codes (Karras 2012).

This is the build on the CPU, made of the NumPy twins of the stages that `bvh.gpu.lbvh` dispatches,
so the tree is the GPU's, node for node. A builder has to work where no device was asked for:
`build` has none to be handed, and one opened behind the caller's back would make a tree depend on
which adapters a machine has. Who holds a device uses `bvh.gpu.lbvh.GpuLbvh`.
"""

from dataclasses import dataclass

import numpy as np

from bvh.gpu.build_records import key_words
from bvh.gpu.hierarchy import hierarchy
from bvh.gpu.range_bounds import box_pyramid, pyramid_dispatches, pyramid_sizes, range_bounds
from bvh.gpu.sorted_boxes import sort_boxes
from bvh.gpu.tree_depth import tree_depth
from bvh.tree import EMPTY, MAX_DEPTH, Bounds, Tree, empty_bounds


@dataclass(frozen=True, slots=True)
class LbvhConfig:
    """Bits of a code: `grid_bits` an axis and `size_bits` (at most as many) of the box's size, 63
    in all. Up to 31 make keys of one word, which sort in half the time, for a tree as good on the
    scenes tried; more pay where a scene is far larger than its details. A tree deeper than
    `max_depth` is split again by fewer bits of its codes."""

    grid_bits: int = 9
    size_bits: int = 4
    max_depth: int = MAX_DEPTH

    def __post_init__(self) -> None:
        if not (0 <= self.size_bits <= self.grid_bits and 1 <= self.grid_bits <= 21):
            raise ValueError(f"codes of {self.grid_bits} bits an axis, {self.size_bits} of size")
        if self.code_bits > 63:
            raise ValueError(f"codes of {self.code_bits} bits, a key holds 63")

    @property
    def code_bits(self) -> int:
        return 3 * self.grid_bits + self.size_bits

    @property
    def key_words(self) -> int:
        return key_words(self.grid_bits, self.size_bits)


def build(bounds: Bounds, config: LbvhConfig) -> Tree:
    """Binary tree over finite boxes `[n, 2, 3]`, one primitive a leaf."""
    count = len(bounds)
    if not count:
        return Tree(np.full((1, 2), EMPTY, np.int32), empty_bounds(1))
    boxes = np.ascontiguousarray(bounds, np.float32).reshape(-1)
    parameters, state, keys, payload = sort_boxes(bounds, config.grid_bits, config.size_bits)
    parameters["max_depth"] = config.max_depth
    deepest = np.zeros(2, np.uint32)
    nodes = max(count - 1, 1)
    children = np.empty((nodes, 2), np.int32)
    ranges = np.empty((nodes, 2), np.uint32)
    parents = np.empty(nodes, np.uint32)
    for attempt in (0, 1):
        parameters["attempt"] = attempt
        hierarchy(
            parameters,
            state,
            keys,
            payload,
            deepest,
            children.reshape(-1),
            ranges.reshape(-1),
            parents,
        )
        tree_depth(parameters, state, parents, deepest)
        if deepest[0] < config.max_depth:
            break
    pyramid = np.empty(6 * sum(pyramid_sizes(count)), np.float32)
    for first, _ in pyramid_dispatches(count):
        parameters["level"] = first
        box_pyramid(parameters, state, boxes, payload, pyramid)
    node_bounds = np.empty((nodes, 2, 3), np.float32)
    range_bounds(parameters, state, ranges.reshape(-1), pyramid, node_bounds.reshape(-1))
    return Tree(children, node_bounds)
