"""The builders: primitive boxes in, a neutral binary tree out.

A new builder is one file and one line in `BUILDERS`; it is then in the command line, the
benchmarks and the contract tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bvh.builders import binned_sah, lbvh
from bvh.tree import Bounds, Tree


@dataclass(frozen=True, slots=True)
class Builder:
    """`build(bounds [n, 2, 3] finite float32, config)` returns a binary Tree whose leaves hold
    one primitive each; `n` may be 0."""

    name: str
    build: Callable[[Bounds, Any], Tree]
    config: Any


BUILDERS: tuple[Builder, ...] = (
    Builder("sah", binned_sah.build, binned_sah.BinnedSahConfig()),
    Builder("lbvh", lbvh.build, lbvh.LbvhConfig()),
)
