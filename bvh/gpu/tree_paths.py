"""How far every inner node is from the root, by pointer jumping.

A path is (node reached, steps | left turns << 16). Every round a node takes over the path of the
node it has reached, so that paths double in length and ROUNDS of them reach the root of any radix
tree. A round reads one buffer and writes the other: no order within a dispatch matters, and the
number of dispatches does not depend on the tree. Source: Wyllie 1979, list ranking.

Steps bound the traversal's stack. Left turns give the place of a node in a preorder walk of the
inner nodes: before it stand its ancestors, as many as its steps, and the subtrees to its left, one
a right turn, which have one inner node less than leaves. That is the node's first leaf plus its
left turns.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import LEFT_TURN
from bvh.gpu.hierarchy import needs_attempt

U32 = NDArray[np.uint32]

# 63 bits of code and 30 of place make at most 93 steps; an odd number of rounds, so that two
# buffers end with the result in the second.
ROUNDS = 7
TILE = 2048  # nodes a workgroup of tree_depth


def tree_paths(
    parameters: NDArray[Any], state: NDArray[Any], deepest: U32, paths: U32, longer_paths: U32
) -> None:
    """Twin of tree_paths.wgsl: one round from `paths` to `longer_paths`."""
    if not needs_attempt(parameters, deepest):
        return
    nodes = max(int(state["kept"][0]) - 1, 1)
    old = paths[: 2 * nodes].reshape(-1, 2)
    new = longer_paths[: 2 * nodes].reshape(-1, 2)
    beyond = old[old[:, 0]]
    new[:, 0] = beyond[:, 0]
    new[:, 1] = old[:, 1] + beyond[:, 1]


def tree_depth(parameters: NDArray[Any], state: NDArray[Any], paths: U32, deepest: U32) -> None:
    """Twin of tree_depth.wgsl: `deepest[attempt]` becomes the most steps of any of `paths`."""
    if not needs_attempt(parameters, deepest):
        return
    nodes = max(int(state["kept"][0]) - 1, 1)
    attempt = int(parameters["attempt"][0])
    deepest[attempt] = (paths[1 : 2 * nodes : 2] & np.uint32(LEFT_TURN - 1)).max()
