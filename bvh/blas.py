"""What a BLAS is asked to be (`BuildOptions`), is (`Blas`) and came out as (`BuildStats`)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh import build_defaults as default
from bvh.build_defaults import COLLAPSES, LEAF_SIZES, NODE_FORMATS, OPACITIES, PAIRINGS
from bvh.builders import BUILDERS
from bvh.layout import GEOMETRY_INDEX_MASK, GEOMETRY_OPAQUE
from engine.gpu.errors import UserError

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """`builder` is a name in BUILDERS; `nodes` auto|fp16|fp32 (the root is always FP32);
    `leaf` the most triangles a block, 1, 2 or 4; `collapse` best|greedy; `reinsertion` rounds of
    optimisation after the builder, 0 for none.

    `pairing` best takes the best pairs (or fans) of all first, on the CPU. With near, triangles
    pair with neighbours in input order before any others and the whole build is that of the GPU,
    whose bytes it gives: on the GPU where `build_blas` is handed a device, by the stages' twins
    where not.

    `opacity` says what decides whether a triangle is tested for holes: its material, or its own
    part of the texture. Whoever hands triangles to a build follows it. Anything else is a
    UserError."""

    builder: str = default.BUILDER
    nodes: str = default.NODES
    leaf: int = default.LEAF
    collapse: str = default.COLLAPSE
    reinsertion: int = default.REINSERTION
    pairing: str = default.PAIRING
    opacity: str = default.OPACITY

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
        if self.pairing not in PAIRINGS:
            raise UserError(f"unknown pairing '{self.pairing}'; known: {', '.join(PAIRINGS)}")
        if self.opacity not in OPACITIES:
            raise UserError(f"unknown opacity '{self.opacity}'; known: {', '.join(OPACITIES)}")
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
    duplicates: int = 0  # of `blocks`: further references to a block, by spatial splits
    spheres: int = 0  # kept; a BLAS holds triangles or spheres, `blocks` counts either's leaves

    @property
    def triangles_per_block(self) -> float:
        return self.triangles / self.blocks if self.blocks else 0.0

    @property
    def duplication(self) -> float:
        """References a block: 1 without spatial splits."""
        return self.blocks / (self.blocks - self.duplicates) if self.blocks else 1.0


@dataclass(frozen=True, slots=True)
class Blas:
    """A container with pointers relative to its own start, its parent links (one u32 for each
    64-byte unit) and its object-space bounds (min +inf, max -inf when empty)."""

    words: U32
    parents: U32
    stats: BuildStats
    bounds: F32  # [2, 3]
    geometry_count: int


def check_input(
    triangles: F32, geometry: U32, primitive: U32, opaque: NDArray[np.bool_]
) -> tuple[F32, U32, U32, NDArray[np.bool_]]:
    """The input of a build as contiguous arrays of their types: `[m, 3, 3]`, `[m]` geometry words,
    `[m]` and one flag a geometry. ValueError where they do not fit together."""
    triangles = np.ascontiguousarray(triangles, np.float32).reshape(-1, 3, 3)
    geometry = np.ascontiguousarray(geometry, np.uint32)
    primitive = np.ascontiguousarray(primitive, np.uint32)
    opaque = np.ascontiguousarray(opaque, np.bool_)
    if not len(triangles) == len(geometry) == len(primitive):
        raise ValueError("triangles, geometry and primitive differ in length")
    largest = int((geometry & ~np.uint32(GEOMETRY_OPAQUE)).max(initial=0))
    if len(geometry) and largest >= len(opaque):
        raise ValueError(f"geometry {largest} has no entry in opaque[{len(opaque)}]")
    if len(opaque) > GEOMETRY_INDEX_MASK + 1:
        raise UserError(f"{len(opaque)} geometries in one BLAS, the limit is 16777216")
    return triangles, geometry, primitive, opaque
