"""Reinsertion: takes subtrees out of a binary tree and puts them back where they cost less.

Every round looks at nodes below parents of large area, finds for each the position that lowers
the summed area of inner nodes most, and carries out those moves that do not get in each other's
way. Source: Bittner, Hapala and Havran 2013 (insertion-based optimisation) and Meister and Bittner
2018 (in parallel).

This is the optimisation on the CPU, made of the NumPy twins of the stages that
`bvh.gpu.reinsertion` dispatches, so the tree is the GPU's, node for node.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import BUILD_STATE
from bvh.gpu.reinsertion_records import PROGRESS, buffer_bytes, make_parameters
from bvh.gpu.reinsertion_stages import END, MARK, MOVE, START, TWINS
from bvh.tree import MAX_DEPTH, Bounds, Tree
from engine.gpu.twin import call_twin

# Of scratch that is not u32.
DTYPES: dict[str, type] = {
    "parents": np.int32,
    "candidates": np.int32,
    "kept_links": np.int32,
    "kept_bounds": np.float32,
    "partials": np.float32,
}


@dataclass(frozen=True, slots=True)
class ReinsertionConfig:
    """`rounds` of about `batch` candidates each, one in `stride` of those nodes whose parents are
    largest; a search ends after `steps` with the best position found by then; rounds end early
    when `stride` on end gained less than `least_progress` of the tree's summed area each. A move
    that would make the tree deeper than `max_depth` is not made."""

    rounds: int = 30
    batch: int = 1 << 14
    stride: int = 4
    steps: int = 200
    least_progress: float = 5e-5
    max_depth: int = MAX_DEPTH


def round_parameters(capacity: int, config: ReinsertionConfig, number: int) -> NDArray[Any]:
    """Parameters of round `number`, from 1; 0 is the refit of the whole tree before the first."""
    return make_parameters(
        nodes=max(capacity - 1, 1),
        round=number,
        batch=config.batch if number else 0,
        stride=config.stride,
        steps=config.steps,
        max_depth=config.max_depth,
        least_progress=config.least_progress,
    )


def reinsert(tree: Tree, primitive_bounds: Bounds, config: ReinsertionConfig) -> Tree:
    """A tree over the same leaves whose summed inner area is not larger. Trees of fewer than four
    leaves, or deeper than `config.max_depth`, come back unchanged."""
    if len(primitive_bounds) < 4:
        return tree
    buffers = make_buffers(tree, primitive_bounds)
    for number in range(config.rounds + 1):
        run_round(buffers, config, number)
        if buffers["progress"]["done"][0]:
            break
    return Tree(buffers["children"].reshape(-1, 2), buffers["bounds"].reshape(-1, 2, 3))


def make_buffers(tree: Tree, primitive_bounds: Bounds) -> dict[str, NDArray[Any]]:
    """Copies of the tree and scratch, by the names that the stages bind."""
    count = len(primitive_bounds)
    sizes = buffer_bytes(count)
    buffers: dict[str, NDArray[Any]] = {
        name: np.zeros(size // 4, DTYPES.get(name, np.uint32)) for name, size in sizes.items()
    }
    state = np.zeros(1, BUILD_STATE.dtype)
    state["kept"] = count
    return {
        **buffers,
        "progress": np.zeros(1, PROGRESS.dtype),
        "state": state,
        "boxes": np.array(primitive_bounds, np.float32).reshape(-1),
        "children": np.array(tree.children, np.int32).reshape(-1),
        "bounds": np.array(tree.bounds, np.float32).reshape(-1),
    }


def run_round(buffers: dict[str, NDArray[Any]], config: ReinsertionConfig, number: int) -> None:
    """Round `number`, from 1, after round 0, in place."""
    capacity = len(buffers["boxes"]) // 6
    buffers["parameters"] = round_parameters(capacity, config, number)
    for name in (*(MOVE if number else START), *MARK):
        run_twin(name, buffers)
    for level in reversed(range(config.max_depth)):
        buffers["parameters"]["level"] = level
        run_twin("refit", buffers)
    for name in END:
        run_twin(name, buffers)


def run_twin(name: str, buffers: dict[str, NDArray[Any]]) -> None:
    """One stage on the CPU."""
    call_twin(TWINS[name], buffers)
