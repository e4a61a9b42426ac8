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
    one primitive each; `n` may be 0. `gpu(device, capacity, config)` makes the builder's object on
    the GPU (`bvh.gpu`), if it has one; it is made where a device is at hand, never by `build`."""

    name: str
    build: Callable[[Bounds, Any], Tree]
    config: Any
    gpu: Callable[[Any, int, Any], Any] | None = None


def _gpu_sah(device: Any, capacity: int, config: Any) -> Any:
    """The same heuristic with bins and sweeps of its own: its tree is not the CPU's, node for node
    (`bvh.gpu.binned_sah`)."""
    from bvh.gpu.binned_sah import GpuBinnedSah

    return GpuBinnedSah(device, capacity, config)


BUILDERS: tuple[Builder, ...] = (
    Builder("sah", binned_sah.build, binned_sah.BinnedSahConfig(), _gpu_sah),
    Builder("lbvh", lbvh.build, lbvh.LbvhConfig()),
)
