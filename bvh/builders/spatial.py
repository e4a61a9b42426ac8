"""SAH with spatial splits: blocks are split into references, then binned SAH builds over them.

Where no cut between whole blocks keeps two sides apart (a floor under furniture, a long beam), a
plane may: the blocks that it cuts get a reference on each side, with the box of the part there. The
references are made before the build, by the upper levels of a top-down one (`bvh.gpu.spatial`), so
that any builder can work over them; a leaf of the tree then repeats its block, so that every block
keeps one parent. `budget` bounds how many references that adds.

Measured with pairs, four wide, against binned SAH, box nodes and blocks read by a ray of the four
kinds (primary, mirror, diffuse, shadow), before and after 30 rounds of reinsertion on both:

| | references added | nodes | blocks | nodes, optimised | blocks, optimised |
| --- | --- | --- | --- | --- | --- |
| kitchen | 5.0% | -9 -12 -13 -9% | -6 -6 -3 -15% | +9 +1 0 +13% | -11 -8 -7 -7% |
| hall | 12.4% | -12 -7 -8 -4% | -9 -10 -8 -3% | -3 -1 -1 +2% | -9 -10 -7 -8% |

So splits pay where nothing is optimised afterwards. Splitting by a priority before any tree is
known (Karras and Aila 2013; 1 to 30% more references) made 3 to 28% more node visits on the
kitchen: pairs are rectangles whose boxes waste nothing, and what is gained by splitting them
depends on what else is there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.builders import binned_sah
from bvh.builders.binned_sah import BinnedSahConfig
from bvh.layout import NODE_TRIANGLE_2, TRIANGLE_V4_WORD
from bvh.tree import Bounds, Tree

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SpatialConfig(BinnedSahConfig):
    """`budget` is the most references that may be added, as a share of the blocks;
    `split_levels` the levels, beyond those that halving would need, on which blocks are split."""

    budget: float = 0.3
    split_levels: int = 8

    def __post_init__(self) -> None:
        if not 0 <= self.budget <= 1:
            raise ValueError(f"a budget of {self.budget}, it is a share of the blocks, 0 to 1")


def build(bounds: Bounds, config: SpatialConfig) -> Tree:
    """Binary tree over boxes `[n, 2, 3]` of references, one a leaf."""
    return binned_sah.build(bounds, config)


def split(
    corners: F32, bounds: Bounds, config: SpatialConfig, capacity: int = 0
) -> tuple[I64, Bounds]:
    """(block [m], box [m, 2, 3]) of every reference to blocks `[n]` of `corners [n, 5, 3]` and
    boxes `[n, 2, 3]`; every block has one at least, and the boxes of a block's references cover
    it. They are those of a `GpuSpatialSplits` of that capacity (by default of n)."""
    from bvh.gpu.spatial_records import level_count
    from bvh.gpu.spatial_twins import budget_share, pack_corners, split_by_twins

    share = budget_share(config.budget)
    levels = level_count(max(capacity, len(bounds)), config.split_levels)
    return split_by_twins(pack_corners(corners), bounds, share, levels)


def block_corners(records: U32, types: NDArray[np.uint8]) -> F32:
    """[n, 5, 3] corners of leaf blocks `[n, 16]`; the fifth is the fourth where there is none."""
    places = np.ascontiguousarray(records).view(np.float32)
    corners = places[:, : TRIANGLE_V4_WORD + 3].reshape(-1, 5, 3).copy()
    short = types < NODE_TRIANGLE_2
    corners[short, 4] = corners[short, 3]
    return corners
