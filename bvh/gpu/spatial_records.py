"""Records and constants of spatial splits (`bvh.gpu.spatial`), shared with its shaders.

Node lists, tiles, work records and bins of centroids are those of the binned SAH build
(`bvh.gpu.binned_sah_records`); a work record's primitive is the block that the reference is to, and
its last word has the reference's sides above the three bins.
"""

from bvh.gpu import binned_sah_records
from engine.gpu.structs import Field, Struct

BINS = binned_sah_records.BINS
SPLIT_ABOVE = 64  # references of a node that is looked at
SPACE_BIN_WORDS = 8  # ordered min, ordered max, references that begin, that end
SPACE_WORDS = 3 * BINS * SPACE_BIN_WORDS
CORNERS = 5  # of a block; fewer repeat the last
CORNER_WORDS = 16  # a block, the last one unused
# Bits of a work record's last word.
OBJECT_LEFT = 1 << 16
SPACE_LEFT = 1 << 17
SPACE_RIGHT = 1 << 18
# Overlap of a cut's two sides, against the root's area, from which a spatial split is tried
# (Stich et al. 2009).
LEAST_OVERLAP = 2.0**-17
# A crossing point is off by some 2^-21 of its edge's largest coordinate; boxes are made larger by
# this much of it.
CROSSING_ERROR = 2.0**-18
LARGEST_COORDINATE = 2.0**100  # of a node that may be split; edges' products stay in range

PARAMETERS = Struct(
    "SplitParameters",
    Field("level", "u32"),
    Field("budget_share", "u32"),  # references that may be added, in 256ths of the blocks
    Field("spare", "u32"),
    Field("zero", "u32"),  # 0, unknown to the compiler
)
STATE = Struct(
    "SplitState",
    Field("budget", "u32"),  # references that may still be added
    Field("finished", "u32"),  # references in small nodes, taken out of the work
    Field("open", "u32"),  # references in the next level's list
    Field("spare", "u32"),
    Field("root_low", "u32", 3),  # ordered
    Field("root_high", "u32", 3),
)
CUT = Struct(
    "SpatialCut",
    Field("object_axis", "u32"),  # or HALVED
    Field("last_bin", "u32"),  # that goes left
    Field("object_left", "u32"),  # references
    Field("object_cost", "f32"),
    Field("tried", "u32"),  # 1: its sides overlap so much that a spatial split is tried
    Field("axis", "u32"),  # of the spatial split
    Field("plane", "f32"),
    Field("cheaper", "u32"),  # 1: the spatial split costs less
    Field("low", "u32", 3),  # the node's box, ordered
    Field("high", "u32", 3),
    Field("spatial", "u32"),  # 1: and the budget has room for it
    Field("left_slot", "u32"),  # in the next level's list, or NO_SLOT
    Field("right_slot", "u32"),
    Field("left_first", "u32"),  # place in the next work, or among the finished
    Field("right_first", "u32"),
)
TILE_SUMS = Struct(
    "SpatialTile",
    Field("object_left", "u32"),  # of this tile, then of all tiles before it
    Field("space_left", "u32"),
    Field("space_right", "u32"),
)


def most_nodes(capacity: int) -> int:
    """Nodes of more than SPLIT_ABOVE references that a level may have, at least one."""
    return max(1, capacity // (SPLIT_ABOVE + 1))


def most_tiles(capacity: int) -> int:
    return capacity // binned_sah_records.TILE + most_nodes(capacity) + 1


def level_count(capacity: int, free_levels: int) -> int:
    """Levels that are dispatched; what is still large after them is not split any more."""
    needed = max(0, -(-capacity // SPLIT_ABOVE) - 1).bit_length()
    return needed + free_levels if needed else 0


def wgsl() -> str:
    """The records and constants for shaders."""
    constants = {
        "SPLIT_ABOVE": f"u32 = {SPLIT_ABOVE}u",
        "SPACE_BIN_WORDS": f"u32 = {SPACE_BIN_WORDS}u",
        "SPACE_WORDS": f"u32 = {SPACE_WORDS}u",
        "CORNERS": f"u32 = {CORNERS}u",
        "CORNER_WORDS": f"u32 = {CORNER_WORDS}u",
        "OBJECT_LEFT": f"u32 = {OBJECT_LEFT}u",
        "SPACE_LEFT": f"u32 = {SPACE_LEFT}u",
        "SPACE_RIGHT": f"u32 = {SPACE_RIGHT}u",
        "LEAST_OVERLAP": "f32 = 0x1p-17",
        "CROSSING_ERROR": "f32 = 0x1p-18",
        "LARGEST_COORDINATE": "f32 = 0x1p+100",
    }
    lines = [f"const {name}: {value};" for name, value in constants.items()]
    records = [r.wgsl() for r in (PARAMETERS, STATE, CUT, TILE_SUMS)]
    return "\n".join(["// Generated from bvh/gpu/spatial_records.py.", *lines, *records])
