"""In which order a wide node holds its children: what decides where a ray enters several at once.

A traversal visits the nearest box first, and in slot order those that the ray enters at one
distance: all that hold its origin. In a top level that is common, as the box around a wood's trees
holds the house between them. A ray begins on some surface, so most likely it begins in, and hits,
what has most of them; once it has, the other boxes are farther than that and are never opened.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bvh.tree import EMPTY, Tree, tree_levels


def heaviest_first(tree: Tree, weights: NDArray[np.integer]) -> Tree:
    """The tree with the children of every node by the heaviest primitive below them, falling;
    `weights [n]` are those of primitives, at least 0. Equal ones stay in their order, empty slots
    come last."""
    children = tree.children.copy()
    of_leaves = np.append(weights, 0).astype(np.float64)  # the last for slots that are none
    heaviest = np.zeros(len(children))
    for nodes in reversed(tree_levels(children)):
        below = children[nodes]
        is_leaf = (below < 0) & (below != EMPTY)
        found = np.where(below >= 0, heaviest[np.maximum(below, 0)], -1.0)
        found = np.where(is_leaf, of_leaves[np.where(is_leaf, ~below, -1)], found)
        heaviest[nodes] = found.max(axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        children[nodes] = np.take_along_axis(below, order, axis=1)
    return replace(tree, children=children)
