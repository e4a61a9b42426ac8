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
from bvh.gpu.reinsertion_moves import (
    claim_by_gain,
    claim_by_node,
    reinsertion_apply,
    reinsertion_check,
    reinsertion_choose,
    reinsertion_judge,
    reinsertion_links,
    reinsertion_select,
    reinsertion_weigh,
)
from bvh.gpu.reinsertion_records import PROGRESS, buffer_bytes, make_parameters
from bvh.gpu.reinsertion_refit import (
    reinsertion_levels,
    reinsertion_mark,
    reinsertion_refit,
    reinsertion_scatter,
    reinsertion_settle,
    reinsertion_sum,
    reinsertion_verdict,
)
from bvh.gpu.reinsertion_search import reinsertion_search
from bvh.tree import MAX_DEPTH, Bounds, Tree


@dataclass(frozen=True, slots=True)
class ReinsertionConfig:
    """`rounds` of about `batch` candidates each, one in `stride` of those nodes whose parents are
    largest; a search ends after `steps` with the best position found by then; rounds end early
    when `stride` on end gained less than `least_progress` of the tree's summed area each. A move
    that would make the tree deeper than `max_depth` is not made."""

    rounds: int = 30
    batch: int = 1 << 13
    stride: int = 4
    steps: int = 400
    least_progress: float = 1e-4
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
    count = len(primitive_bounds)
    if count < 4:
        return tree
    boxes = np.array(primitive_bounds, np.float32).reshape(-1)
    children = tree.children.astype(np.int32).reshape(-1)
    bounds = tree.bounds.astype(np.float32).reshape(-1)
    state = np.zeros(1, BUILD_STATE.dtype)
    state["kept"] = count
    s = {name: np.zeros(size // 4, np.uint32) for name, size in buffer_bytes(count).items()}
    for name in ("parents", "candidates", "kept_links"):
        s[name] = s[name].view(np.int32)
    for name in ("kept_bounds", "partials"):
        s[name] = s[name].view(np.float32)
    progress = s["progress"].view(PROGRESS.dtype)
    tally, candidates, moves, parents = s["tally"], s["candidates"], s["moves"], s["parents"]
    levels = [make_parameters(level=level) for level in range(config.max_depth)]

    for number in range(config.rounds + 1):
        p = round_parameters(count, config, number)
        if number == 0:
            reinsertion_links(
                p, state, children, bounds, parents, s["moving"], s["marks"], progress
            )
            reinsertion_choose(p, s["histogram"], tally)
        else:
            reinsertion_weigh(p, state, progress, parents, bounds, s["locks"], s["histogram"])
            reinsertion_choose(p, s["histogram"], tally)
            reinsertion_select(p, state, progress, parents, bounds, tally, candidates)
            reinsertion_search(
                p, progress, tally, candidates, children, parents, bounds, boxes, moves
            )
            for claim in (claim_by_gain, claim_by_node):
                claim(p, tally, candidates, moves, children, parents, s["locks"])
            reinsertion_judge(
                p, tally, candidates, children, parents, s["locks"], moves, s["moving"]
            )
            reinsertion_check(p, candidates, parents, s["moving"], s["heights"], moves, tally)
            reinsertion_apply(p, tally, candidates, moves, children, parents)
        reinsertion_mark(p, state, progress, candidates, moves, parents, tally, s["marks"])
        reinsertion_levels(tally)
        reinsertion_scatter(state, progress, s["marks"], tally, s["changed"])
        for level in reversed(levels):
            reinsertion_refit(level, tally, s["changed"], children, boxes, bounds, s["heights"])
        reinsertion_sum(p, state, progress, bounds, s["partials"])
        reinsertion_verdict(p, state, tally, s["heights"], s["partials"], progress)
        reinsertion_settle(
            p,
            progress,
            s["changed"],
            children,
            bounds,
            s["heights"],
            parents,
            s["kept_links"],
            s["kept_bounds"],
        )
        if progress["done"][0]:
            break
    return Tree(children.reshape(-1, 2), bounds.reshape(-1, 2, 3))
