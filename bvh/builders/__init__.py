"""The builders: primitive boxes in, a neutral binary tree out.

A new builder is one file and one line in `BUILDERS`; it is then in the command line, the
benchmarks and the contract tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bvh.builders import binned_sah, lbvh, ploc, spatial
from bvh.tree import Bounds, Tree


@dataclass(frozen=True, slots=True)
class Builder:
    """`build(bounds [n, 2, 3] finite float32, config)` returns a binary Tree whose leaves hold
    one primitive each; `n` may be 0. `gpu(device, capacity, config)` makes the builder's object on
    the GPU (`bvh.gpu`), if it has one; it is made where a device is at hand, never by `build`.
    `twin(bounds, config, capacity)` is that object's tree on the CPU, where `build` gives another.
    `split(corners [n, 5, 3], bounds, config, capacity)` gives (block [m], box [m, 2, 3]) of the
    references to blocks that the builder wants to work over, if not over the blocks themselves;
    `gpu_split(device, capacity, config)` makes the object that does so on the GPU. `gpu_bytes` is
    no less than what the largest buffer of either takes for a block: what a mesh must fit.
    """

    name: str
    build: Callable[[Bounds, Any], Tree]
    config: Any
    gpu: Callable[[Any, int, Any], Any] | None = None
    twin: Callable[[Bounds, Any, int], Tree] | None = None
    split: Callable[[Any, Bounds, Any, int], tuple[Any, Bounds]] | None = None
    gpu_split: Callable[[Any, int, Any], Any] | None = None
    gpu_bytes: int = 32


def _gpu_sah(device: Any, capacity: int, config: Any) -> Any:
    """The same heuristic with bins and sweeps of its own: its tree is not the CPU's, node for node
    (`bvh.gpu.binned_sah`)."""
    from bvh.gpu.binned_sah import GpuBinnedSah

    return GpuBinnedSah(device, capacity, config)


def _gpu_ploc(device: Any, capacity: int, config: Any) -> Any:
    from bvh.gpu.ploc import GpuPloc

    return GpuPloc(device, capacity, config)


def _sah_twin(bounds: Bounds, config: Any, capacity: int) -> Tree:
    from bvh.gpu.binned_sah import build_by_twins

    return build_by_twins(bounds, config, capacity)


def _gpu_lbvh(device: Any, capacity: int, config: Any) -> Any:
    from bvh.gpu.lbvh import GpuLbvh

    return GpuLbvh(device, capacity, config)


def _gpu_splits(device: Any, capacity: int, config: Any) -> Any:
    from bvh.gpu.spatial import GpuSpatialSplits

    return GpuSpatialSplits(device, capacity, config)


def _spatial_twin(bounds: Bounds, config: Any, capacity: int) -> Tree:
    from bvh.gpu.spatial_twins import budget_share, most_references

    return _sah_twin(bounds, config, most_references(capacity, budget_share(config.budget)))


BUILDERS: tuple[Builder, ...] = (
    Builder("sah", binned_sah.build, binned_sah.BinnedSahConfig(), _gpu_sah, _sah_twin),
    Builder("lbvh", lbvh.build, lbvh.LbvhConfig(), _gpu_lbvh, gpu_bytes=49),
    Builder("ploc", ploc.build, ploc.PlocConfig(), _gpu_ploc, ploc.build, gpu_bytes=33),
    Builder(
        "spatial",
        spatial.build,
        spatial.SpatialConfig(),
        _gpu_sah,
        _spatial_twin,
        spatial.split,
        _gpu_splits,
        gpu_bytes=64,
    ),
)


def find_builder(name: str) -> Builder:
    """The builder of that name, which is one of BUILDERS."""
    return next(builder for builder in BUILDERS if builder.name == name)
