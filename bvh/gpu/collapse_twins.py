"""Order and collapse of a binary tree by the twins of the GPU's stages."""

from inspect import signature
from typing import Any

import numpy as np

from bvh.gpu.build_records import BUILD_STATE, group_count
from bvh.gpu.collapse import WIDTH, place_wide, wide_marks, wide_shapes
from bvh.gpu.tree_order import level_nodes, node_paths, place_levels, subtrees, tree_parents
from bvh.gpu.tree_order_records import LEVELS
from bvh.tree import MAX_DEPTH, Tree

# Words an inner node, of the buffers that have some.
_NODE_WORDS = {
    "parents": 1,
    "paths": 2,
    "level_nodes": 1,
    "leaf_counts": 2,
    "heights": 1,
    "shares": 1,
    "ranges": 2,
    "marks": 2,
    "order": 1,
    "places": 1,
}


def collapse_by_twins(tree: Tree, kept: int, mode: str) -> Tree:
    """The four-wide tree, depth first, that TreeOrder and GpuCollapse of that `mode` make of a
    binary one over `kept` primitives."""
    nodes = max(kept - 1, 1)
    tiles = group_count(nodes)
    arrays: dict[str, Any] = {
        name: np.zeros(words * nodes, np.uint32) for name, words in _NODE_WORDS.items()
    }
    arrays |= {
        "state": np.zeros(1, BUILD_STATE.dtype),
        "children": np.ascontiguousarray(tree.children).reshape(-1),
        "bounds": np.ascontiguousarray(tree.bounds).reshape(-1),
        "totals": np.zeros(2 * 256, np.uint32),
        "counts": np.zeros(LEVELS * tiles, np.uint32),
        "level_starts": np.zeros(LEVELS, np.uint32),
        "costs": np.zeros(3 * nodes, np.float32),
        "leaf_order": np.zeros(max(kept, 1), np.uint32),
        "steps": np.zeros(WIDTH * nodes, np.int32),
        "wide_children": np.zeros(WIDTH * nodes, np.int32),
        "wide_summary": np.zeros(4, np.uint32),
    }
    arrays["state"]["kept"] = kept
    arrays["offsets"] = arrays["counts"]

    def run(twin: Any, *parameters: int, **options: Any) -> None:
        arrays["parameters"] = np.array(parameters, np.uint32)
        names = [name for name in signature(twin).parameters if name not in options]
        twin(*(arrays[name] for name in names), **options)

    run(tree_parents)
    run(node_paths, nodes, 0, 0, tiles)
    run(place_levels, nodes, 0, 0, tiles)
    run(level_nodes, nodes, 0, 0, tiles)
    run(subtrees, 0, MAX_DEPTH, 0, 0)
    run(wide_shapes, 0, 0, 0, 0, greedy=mode == "greedy")
    run(wide_marks)
    arrays["order"] = np.cumsum(arrays["order"], dtype=np.uint32) - arrays["order"]
    run(place_wide)
    count = int(arrays["wide_summary"][0])
    wide = arrays["wide_children"][: WIDTH * count].reshape(-1, WIDTH)
    return Tree(wide, tree.bounds[arrays["places"][:count]])
