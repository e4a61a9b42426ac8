"""How the BVH is built, which meshes share a tree, and what becomes of it as things move."""

from bvh.build_defaults import COLLAPSES, LEAF_SIZES, NODE_FORMATS, OPACITIES, PAIRINGS
from bvh.builders import BUILDERS
from passes.frame_options import UPDATES
from passes.grouping import GROUPS
from passes.option import OTHER_ORDER, Option, of_build, of_frame, of_settings

# Terms that another tree changes with the one that its option claims, and why.
OTHER_UPDATE = ("build and update", "what deforms has another number of nodes to update")
OTHER_TREE = (
    OTHER_ORDER,
    OTHER_UPDATE,
    ("layout bytes", "another tree has another number of nodes"),
)

BUILD: tuple[Option, ...] = (
    of_build(
        "builder",
        "builder",
        "choice",
        "nodes",
        choices=tuple(builder.name for builder in BUILDERS),
        help="How boxes become a tree.",
        follows=OTHER_TREE,
    ),
    of_build(
        "nodes",
        "node kind",
        "choice",
        "layout bytes",
        choices=NODE_FORMATS,
        help="Inner box nodes: 64 bytes of halves, 128 of floats, or what loses little.",
        follows=(
            ("nodes", "boxes of halves are a little larger, so that more are visited"),
            ("time a node", "floats need no unpacking, and more bytes are read"),
            OTHER_ORDER,
            OTHER_UPDATE,
        ),
    ),
    of_build(
        "leaf",
        "leaf",
        "choice",
        "layout bytes",
        choices=LEAF_SIZES,
        help="Most triangles that share a 64-byte block.",
        follows=(
            ("nodes", "a leaf of more triangles stands for several visits"),
            ("time a node", "and takes longer to test"),
            OTHER_ORDER,
            OTHER_UPDATE,
        ),
    ),
    of_build(
        "reinsertion",
        "reinsertion",
        "number",
        "nodes",
        high=60,
        step=1,
        help="Rounds that move subtrees to better places after the builder.",
        follows=OTHER_TREE,
    ),
    of_build(
        "collapse",
        "collapse",
        "choice",
        "nodes",
        choices=COLLAPSES,
        help="How the binary tree becomes four wide.",
        follows=OTHER_TREE,
    ),
    of_build(
        "pairing",
        "pairing",
        "choice",
        "build and update",
        choices=PAIRINGS,
        help="Triangles into blocks: near ones, as the GPU does, or the best of all, on the CPU.",
        follows=(
            ("layout bytes", "triangles that are paired better need fewer blocks"),
            ("nodes", "and fewer visits"),
            OTHER_ORDER,
        ),
    ),
    of_build(
        "opacity",
        "opacity",
        "choice",
        "any-hit",
        choices=OPACITIES,
        help="What decides where holes are tested for: each triangle's part of the texture, or its "
        "material alone.",
        follows=(
            ("nodes", "triangles that are all hole are left out of the tree"),
            ("layout bytes", "triangles that are all hole are left out of the tree"),
        ),
    ),
    of_settings(
        "group",
        "group",
        "scene",
        "nodes",
        choices=GROUPS,
        help="One BLAS for all that stands still, one an object, or one for everything.",
        follows=OTHER_TREE,
    ),
)

UPDATE: tuple[Option, ...] = (
    of_frame(
        "update",
        "update",
        "choice",
        "frame",
        "build and update",
        choices=UPDATES,
        help="What deforms: fit its boxes anew each frame, build its tree anew, or decide by SAH.",
        follows=(
            ("nodes", "a new tree fits a pose better than one that was refitted"),
            OTHER_ORDER,
        ),
    ),
)
