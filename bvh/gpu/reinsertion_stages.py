"""The stages of a reinsertion by name, in the order in which GPU and CPU run them.

Round 0 refits the whole tree: START, then MARK, `refit` once a level from the deepest up, END.
Every further round does the same after MOVE.
"""

from collections.abc import Callable

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

TWINS: dict[str, Callable[..., None]] = {
    "links": reinsertion_links,
    "weigh": reinsertion_weigh,
    "choose": reinsertion_choose,
    "select": reinsertion_select,
    "search": reinsertion_search,
    "claim_by_gain": claim_by_gain,
    "claim_by_node": claim_by_node,
    "judge": reinsertion_judge,
    "check": reinsertion_check,
    "apply": reinsertion_apply,
    "mark": reinsertion_mark,
    "levels": reinsertion_levels,
    "scatter": reinsertion_scatter,
    "refit": reinsertion_refit,
    "sum": reinsertion_sum,
    "verdict": reinsertion_verdict,
    "settle": reinsertion_settle,
}
START = ("links", "choose")
MOVE = (
    "weigh",
    "choose",
    "select",
    "search",
    "claim_by_gain",
    "claim_by_node",
    "judge",
    "check",
    "apply",
)
MARK = ("mark", "levels", "scatter")
END = ("sum", "verdict", "settle")
