"""Triangles to a BLAS: filter, pair, build, optimise, collapse, encode.

Space: the caller's object space; recentring a mesh so that FP16 stays tight is the caller's
business, through the instance transform.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.builders import BUILDERS
from bvh.encode import encode, make_image, pack_blocks
from bvh.fan_blocks import fan_table_units, make_fans
from bvh.header import KIND_BLAS
from bvh.layout import GEOMETRY_INDEX_MASK, NODE_TRIANGLE_1, NODE_TRIANGLE_2, UNIT_BYTES
from bvh.pairing import block_bounds, pair_triangles, single_blocks
from bvh.sah import sah_cost
from bvh.transforms.collapse import collapse_best, collapse_greedy
from bvh.transforms.reinsertion import ReinsertionConfig, reinsert
from bvh.tree import EMPTY, Tree, stack_bound, tree_levels
from bvh.triangles import keep_usable, triangle_bounds
from engine.gpu.errors import UserError

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

NODE_FORMATS = ("auto", "fp16", "fp32")
LEAF_SIZES = (1, 2, 4)
COLLAPSES: dict[str, Callable[[Tree], Tree]] = {"best": collapse_best, "greedy": collapse_greedy}


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """`builder` is a name in BUILDERS; `nodes` auto|fp16|fp32 (the root is always FP32);
    `leaf` the most triangles a block, 1, 2 or 4; `collapse` best|greedy; `reinsertion` rounds of
    optimisation after the builder, 0 for none. Anything else is a UserError."""

    builder: str = "sah"
    nodes: str = "auto"
    leaf: int = 2
    collapse: str = "best"
    reinsertion: int = 30

    def __post_init__(self) -> None:
        names = tuple(builder.name for builder in BUILDERS)
        if self.builder not in names:
            raise UserError(f"unknown builder '{self.builder}'; known: {', '.join(names)}")
        if self.nodes not in NODE_FORMATS:
            raise UserError(f"unknown node format '{self.nodes}'; known: {', '.join(NODE_FORMATS)}")
        if self.leaf not in LEAF_SIZES:
            raise UserError(f"leaf must be 1, 2 or 4 triangles a block, not {self.leaf}")
        if self.collapse not in COLLAPSES:
            raise UserError(f"unknown collapse '{self.collapse}'; known: {', '.join(COLLAPSES)}")
        if not 0 <= self.reinsertion <= 1000:
            raise UserError(f"reinsertion takes 0 to 1000 rounds, not {self.reinsertion}")


@dataclass(frozen=True, slots=True)
class BuildStats:
    """What a build made. `sah` is that of the four-wide tree with exact boxes (see `bvh.sah`),
    `fill` the mean number of used child slots, `depth` the levels of box nodes, `stack_bound` the
    most stack entries that a traversal of this container alone can need."""

    builder: str
    triangles: int  # kept
    dropped_degenerate: int
    dropped_nonfinite: int
    blocks: int
    pairs: int
    nodes_fp16: int
    nodes_fp32: int
    bytes: int  # the whole container
    fill: float
    depth: int
    stack_bound: int
    sah: float
    build_ms: float
    fans: int = 0  # blocks of three or four triangles; defaults are for files that lack these
    fan_table_bytes: int = 0  # of `bytes`: where their primitive ids are

    @property
    def triangles_per_block(self) -> float:
        return self.triangles / self.blocks if self.blocks else 0.0


@dataclass(frozen=True, slots=True)
class Blas:
    """A container with pointers relative to its own start, its parent links (one u32 for each
    64-byte unit) and its object-space bounds (min +inf, max -inf when empty)."""

    words: U32
    parents: U32
    stats: BuildStats
    bounds: F32  # [2, 3]
    geometry_count: int


def build_tree(bounds: F32, options: BuildOptions) -> Tree:
    """Four-wide tree over boxes `[n, 2, 3]`, one primitive a leaf."""
    builder = next(b for b in BUILDERS if b.name == options.builder)
    tree = builder.build(bounds, builder.config)
    if options.reinsertion:
        tree = reinsert(tree, bounds, ReinsertionConfig(rounds=options.reinsertion))
    return COLLAPSES[options.collapse](tree)


def build_blas(
    triangles: F32,
    geometry: U32,
    primitive: U32,
    opaque: NDArray[np.bool_],
    options: BuildOptions,
) -> Blas:
    """A BLAS over `triangles [m, 3, 3]`. `geometry[m]` indexes `opaque[g]` and is what a hit adds
    to its instance's first object; `primitive[m]` is reported as it is. Degenerate and non-finite
    triangles are dropped and counted; none left gives a valid empty BLAS."""
    started = time.perf_counter()
    triangles = np.ascontiguousarray(triangles, np.float32).reshape(-1, 3, 3)
    geometry = np.ascontiguousarray(geometry, np.uint32)
    primitive = np.ascontiguousarray(primitive, np.uint32)
    opaque = np.ascontiguousarray(opaque, np.bool_)
    if not len(triangles) == len(geometry) == len(primitive):
        raise ValueError("triangles, geometry and primitive differ in length")
    if len(geometry) and int(geometry.max()) >= len(opaque):
        raise ValueError(f"geometry {int(geometry.max())} has no entry in opaque[{len(opaque)}]")
    if len(opaque) > GEOMETRY_INDEX_MASK + 1:
        raise UserError(f"{len(opaque)} geometries in one BLAS, the limit is 16777216")

    kept = keep_usable(triangles, geometry, primitive)
    boxes = triangle_bounds(kept.positions)
    fan_ids = None
    if options.leaf == 4 and len(boxes):
        boxes, leaves, leaf_types, fan_ids = make_fans(kept, boxes, opaque)
    else:
        if options.leaf == 2 and len(boxes):
            blocks = pair_triangles(kept.positions, kept.geometry, boxes)
        else:
            blocks = single_blocks(len(boxes))
        boxes = block_bounds(blocks, boxes)
        leaves, leaf_types = pack_blocks(blocks, kept, opaque)
    tree = build_tree(boxes, options)
    image = make_image(
        tree,
        boxes,
        leaves,
        leaf_types,
        kind=KIND_BLAS,
        nodes=options.nodes,
        primitive_count=len(kept.positions),
        geometry_count=len(opaque),
        fan_ids=fan_ids,
    )
    words, parents = encode(image)
    fans = int((leaf_types >= NODE_TRIANGLE_2).sum())
    stats = BuildStats(
        builder=options.builder,
        triangles=len(kept.positions),
        dropped_degenerate=kept.dropped_degenerate,
        dropped_nonfinite=kept.dropped_nonfinite,
        blocks=len(leaves),
        pairs=int((leaf_types == NODE_TRIANGLE_1).sum()),
        nodes_fp16=int(image.half.sum()),
        nodes_fp32=int((~image.half).sum()),
        bytes=4 * len(words),
        fill=float((tree.children != EMPTY).sum() / len(tree.children)),
        depth=len(tree_levels(tree.children)),
        stack_bound=stack_bound(tree.children),
        sah=sah_cost(tree, boxes),
        build_ms=1000.0 * (time.perf_counter() - started),
        fans=fans,
        fan_table_bytes=UNIT_BYTES * fan_table_units(len(leaves), fans),
    )
    return Blas(words, parents, stats, image.bounds, len(opaque))
