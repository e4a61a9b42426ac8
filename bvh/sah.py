"""Surface area heuristic: the expected work of a random ray that hits the root's box.

    SAH = sum over inner nodes  Ct * area(node) / area(root)
        + sum over leaves       Ci * area(leaf) / area(root)

Ct = 1 is one box node fetched and tested (its two or four children together), Ci = 1 one
triangle block or instance node fetched. So the cost of a four-wide tree is the mean number of
64/128-byte records that a ray reads when nothing hides anything. Source: Goldsmith and Salmon
1987, MacDonald and Booth 1990.
"""

import numpy as np

from bvh.tree import Bounds, Tree, child_bounds, half_area

TRAVERSAL_COST = 1.0  # Ct
INTERSECTION_COST = 1.0  # Ci


def sah_cost(
    tree: Tree,
    primitive_bounds: Bounds,
    *,
    traversal_cost: float = TRAVERSAL_COST,
    intersection_cost: float = INTERSECTION_COST,
) -> float:
    """Cost of a binary or four-wide tree; 0 for an empty one. A root of zero area (everything on
    one line or point) costs as if every node were hit."""
    leaves = tree.children < 0
    boxes = child_bounds(tree.children, tree.bounds, primitive_bounds)
    used = leaves & np.isfinite(boxes[:, :, 0, 0])
    if not used.any():
        return 0.0
    root = float(half_area(tree.bounds[0]))
    if root == 0.0:
        return traversal_cost * len(tree.children) + intersection_cost * int(used.sum())
    inner_area = float(half_area(tree.bounds).sum())
    leaf_area = float(half_area(boxes[used]).sum())
    return (traversal_cost * inner_area + intersection_cost * leaf_area) / root
