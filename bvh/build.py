"""Triangles to a BLAS: filter, pair, build, optimise, collapse, encode.

Space: the caller's object space; recentring a mesh so that FP16 stays tight is the caller's
business, through the instance transform.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.blas import Blas, BuildOptions, BuildStats, check_input
from bvh.builders import find_builder
from bvh.builders.spatial import block_corners
from bvh.coordinate_range import check_range
from bvh.encode import encode, make_image, pack_blocks
from bvh.fan_blocks import fan_table_units, make_fans, pack_fans
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.gpu.build_capacity import build_capacity
from bvh.gpu.collapse_twins import collapse_by_twins
from bvh.gpu.fan_encode import host_fans
from bvh.gpu.fan_near import fans_on_cpu
from bvh.gpu.pair_records import host_blocks, triangle_ids
from bvh.gpu.pairing import pair_on_cpu
from bvh.header import KIND_BLAS
from bvh.layout import NODE_TRIANGLE_1, NODE_TRIANGLE_2, UNIT_BYTES
from bvh.pairing import block_bounds, pair_triangles, single_blocks
from bvh.phase_clock import PhaseClock
from bvh.sah import sah_cost
from bvh.transforms.collapse import collapse_best, collapse_greedy
from bvh.transforms.reinsertion import ReinsertionConfig, reinsert
from bvh.tree import EMPTY, Tree, stack_bound, tree_levels
from bvh.triangles import TriangleSet, keep_usable, triangle_bounds
from engine.gpu.device import Device

__all__ = ["Blas", "BuildOptions", "BuildStats", "build_blas", "build_by_twins", "build_tree"]

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

COLLAPSES: dict[str, Callable[[Tree], Tree]] = {"best": collapse_best, "greedy": collapse_greedy}


@dataclass(frozen=True, slots=True)
class _Leaves:
    """What a tree is built over, and what stands in its leaves."""

    boxes: F32  # [n, 2, 3]
    records: U32  # [n, 16] blocks
    types: NDArray[np.uint8]  # [n]
    fan_ids: U32 | None
    triangles: int
    dropped_degenerate: int
    dropped_nonfinite: int
    duplicates: int = 0  # records that are there again


def build_tree(bounds: F32, options: BuildOptions, clock: PhaseClock | None = None) -> Tree:
    """Four-wide tree over boxes `[n, 2, 3]`, one primitive a leaf."""
    clock = clock or PhaseClock()
    builder = find_builder(options.builder)
    with clock("tree"):
        tree = builder.build(bounds, builder.config)
    tree = _optimise(tree, bounds, options, clock)
    with clock("collapse"):
        return COLLAPSES[options.collapse](tree)


def _optimise(tree: Tree, bounds: F32, options: BuildOptions, clock: PhaseClock) -> Tree:
    if not options.reinsertion:
        return tree
    with clock("reinsertion"):
        return reinsert(tree, bounds, ReinsertionConfig(rounds=options.reinsertion))


def build_blas(
    triangles: F32,
    geometry: U32,
    primitive: U32,
    opaque: NDArray[np.bool_],
    options: BuildOptions,
    *,
    device: Device | None = None,
    clock: PhaseClock | None = None,
) -> Blas:
    """A BLAS over `triangles [m, 3, 3]`. `geometry[m]` indexes `opaque[g]` and is what a hit adds
    to its instance's first object; where it has GEOMETRY_OPAQUE set, the triangle is opaque though
    its geometry is not. Triangles of unequal opacity share no block. `primitive[m]` is
    reported as it is. Degenerate and non-finite triangles are dropped and counted; none left gives
    a valid empty BLAS. Coordinates outside the range of `bvh.coordinate_range` are a UserError.

    With a `device` it is built there (see `bvh.gpu.blas_builder` for the options that can be);
    without one on the CPU, to the same bytes where `options.pairing` is near. `clock` learns how
    long the parts of a build on the CPU took."""
    clock = clock or PhaseClock()
    triangles, geometry, primitive, opaque = check_input(triangles, geometry, primitive, opaque)
    check_range(triangles, geometry)
    if device is not None:
        builder = GpuBlasBuilder(device, build_capacity(len(triangles)), options)
        return builder.build(triangles, geometry, primitive, opaque)
    started = time.perf_counter()
    if options.pairing == "near":
        capacity = build_capacity(len(triangles))
        given = (triangles, geometry, primitive, opaque)
        blas = build_by_twins(*given, options, capacity, clock)
    else:
        with clock("blocks"):
            leaves = _best_leaves(triangles, geometry, primitive, opaque, options)
        leaves = _split(leaves, options, 0, clock)
        tree = build_tree(leaves.boxes, options, clock)
        with clock("encode"):
            blas = _encode(tree, leaves, options, len(opaque))
    build_ms = 1000.0 * (time.perf_counter() - started)
    return replace(blas, stats=replace(blas.stats, build_ms=build_ms))


def build_by_twins(
    triangles: F32,
    geometry: U32,
    primitive: U32,
    opaque: NDArray[np.bool_],
    options: BuildOptions,
    capacity: int,
    clock: PhaseClock | None = None,
) -> Blas:
    """On the CPU, the BLAS that a GpuBlasBuilder of that capacity makes."""
    clock = clock or PhaseClock()
    with clock("blocks"):
        leaves = _near_leaves(triangles, geometry, primitive, opaque, options, capacity)
    leaves = _split(leaves, options, capacity, clock)
    tree = _tree_of_the_gpu(leaves.boxes, options, capacity, clock)
    with clock("encode"):
        return _encode(tree, leaves, options, len(opaque))


def _near_leaves(
    triangles: F32, geometry: U32, primitive: U32, opaque: Any, options: Any, capacity: int
) -> _Leaves:
    """Triangles paired, or made fans of, with what is near them, as on the GPU."""
    ids = triangle_ids(geometry, primitive, opaque)
    every = TriangleSet(triangles, geometry, primitive, 0, 0)
    fan_ids = None
    if options.leaf > 2:
        state, blocks, boxes = fans_on_cpu(triangles, ids)
        records, types, fan_ids = pack_fans(host_fans(blocks), every, opaque)
    else:
        state, blocks, boxes = pair_on_cpu(triangles, ids, options.leaf, capacity)
        records, types = pack_blocks(host_blocks(blocks), every, opaque)
    counts = (int(state[name][0]) for name in ("triangles", "degenerate", "nonfinite"))
    return _Leaves(boxes, records, types, fan_ids, *counts)


def _best_leaves(
    triangles: F32, geometry: U32, primitive: U32, opaque: Any, options: Any
) -> _Leaves:
    """The best pairs or fans of all taken first."""
    kept = keep_usable(triangles, geometry, primitive)
    boxes = triangle_bounds(kept.positions)
    counts = (len(kept.positions), kept.dropped_degenerate, kept.dropped_nonfinite)
    if options.leaf == 4 and len(boxes):
        return _Leaves(*make_fans(kept, boxes, opaque), *counts)
    if options.leaf == 2 and len(boxes):
        blocks = pair_triangles(kept.positions, kept.geometry, boxes)
    else:
        blocks = single_blocks(len(boxes))
    boxes = block_bounds(blocks, boxes)
    return _Leaves(boxes, *pack_blocks(blocks, kept, opaque), None, *counts)


def _split(leaves: _Leaves, options: BuildOptions, capacity: int, clock: PhaseClock) -> _Leaves:
    """One leaf a reference, where the builder works over references to blocks."""
    builder = find_builder(options.builder)
    if builder.split is None:
        return leaves
    with clock("splits"):
        corners = block_corners(leaves.records, leaves.types)
        block, boxes = builder.split(corners, leaves.boxes, builder.config, capacity)
    return replace(
        leaves,
        boxes=boxes,
        records=leaves.records[block],
        types=leaves.types[block],
        fan_ids=None if leaves.fan_ids is None else leaves.fan_ids[block],
        duplicates=len(block) - len(leaves.records),
    )


def _tree_of_the_gpu(boxes: F32, options: BuildOptions, capacity: int, clock: PhaseClock) -> Tree:
    """What GpuBlasBuilder makes of blocks' boxes, by its stages' twins."""
    builder = find_builder(options.builder)
    with clock("tree"):
        if builder.twin is None:
            tree = builder.build(boxes, builder.config)
        else:
            tree = builder.twin(boxes, builder.config, capacity)
    tree = _optimise(tree, boxes, options, clock)
    with clock("collapse"):
        return collapse_by_twins(tree, len(boxes), options.collapse)


def _encode(tree: Tree, leaves: _Leaves, options: BuildOptions, geometry_count: int) -> Blas:
    image = make_image(
        tree,
        leaves.boxes,
        leaves.records,
        leaves.types,
        kind=KIND_BLAS,
        nodes=options.nodes,
        primitive_count=leaves.triangles,
        geometry_count=geometry_count,
        fan_ids=leaves.fan_ids,
    )
    words, parents = encode(image)
    fans = int((leaves.types >= NODE_TRIANGLE_2).sum())
    stats = BuildStats(
        builder=options.builder,
        triangles=leaves.triangles,
        dropped_degenerate=leaves.dropped_degenerate,
        dropped_nonfinite=leaves.dropped_nonfinite,
        blocks=len(leaves.records),
        pairs=int((leaves.types == NODE_TRIANGLE_1).sum()),
        nodes_fp16=int(image.half.sum()),
        nodes_fp32=int((~image.half).sum()),
        bytes=4 * len(words),
        fill=float((tree.children != EMPTY).sum() / len(tree.children)),
        depth=len(tree_levels(tree.children)),
        stack_bound=stack_bound(tree.children),
        sah=sah_cost(tree, leaves.boxes),
        build_ms=0.0,
        fans=fans,
        fan_table_bytes=UNIT_BYTES * fan_table_units(len(leaves.records), fans),
        duplicates=leaves.duplicates,
    )
    return Blas(words, parents, stats, image.bounds, geometry_count)
