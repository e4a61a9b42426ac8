"""Every option that a user may change of a frame or a build, declared once.

The viewer's controls, their effect texts and random tests loop over `OPTIONS`; a new field of
`FrameOptions` or `BuildOptions` belongs here or on `NOT_FOR_USERS`, which a test holds complete.
"""

from bvh.build_defaults import COLLAPSES, LEAF_SIZES, NODE_FORMATS, OPACITIES, PAIRINGS
from bvh.builders import BUILDERS
from bvh.gpu.trace_rays import STACK_SIZES, TRAVERSALS
from engine.gpu.errors import UserError
from passes.frame_options import (
    ANY_HIT_MODES,
    ANY_HITS,
    COMPACTIONS,
    EVERY_TYPE,
    GBUFFERS,
    HIT_SORTS,
    HIT_TABLES,
    LIGHT_CHOICES,
    MOST_BOUNCES,
    MOST_DENOISER,
    MOST_HISTORY,
    MOST_ROUNDS,
    MOST_SCREEN_STEPS,
    MOST_SHADOW_RAYS,
    PASSES,
    PRIMARY,
    PROBE_POSITIONS,
    PROBE_SIZES,
    RAY_SORTS,
    REFLECTION_BLOCKS,
    REFLECTIONS,
    ROUGH_FALLBACKS,
    SHADOW_MAP_SIZES,
    SHADOWS,
    UPDATES,
    UPSAMPLES,
)
from passes.grouping import GROUPS
from passes.option import (
    COST_TERMS,
    KINDS,
    SCOPES,
    Option,
    ViewSettings,
    kernel_of,
    mask_of,
    of_build,
    of_frame,
    of_settings,
)
from passes.ray_kernel import LOOPS, SORTS, STACKS
from passes.rays import RAY_TYPES
from passes.sampler import SAMPLERS

__all__ = [
    "COST_TERMS",
    "KINDS",
    "NOT_FOR_USERS",
    "OPTIONS",
    "SCOPES",
    "UPDATES",
    "Option",
    "ViewSettings",
    "changed",
    "find_option",
]

# Terms that follow another, and why (`Option.follows`).
OTHER_ORDER = ("any-hit", "another order of visits meets other candidates first")
OTHER_UPDATE = ("build and update", "what deforms has another number of nodes to update")
OTHER_TREE = (
    OTHER_ORDER,
    OTHER_UPDATE,
    ("layout bytes", "another tree has another number of nodes"),
)

# Sizes are the window's, and queues hold every ray unless a test wants them to overflow.
NOT_FOR_USERS = ("width", "height", "queue_fraction")


def kernel_options(ray_type: str) -> tuple[Option, ...]:
    """What a ray type's traversal kernel is built with."""
    return (
        kernel_of(
            "sort",
            ray_type,
            "nodes' order",
            "nodes",
            choices=SORTS,
            help=f"Nearest child first for {ray_type} rays, or as the frame says.",
            follows=(OTHER_ORDER,),
        ),
        kernel_of(
            "loops",
            ray_type,
            "loops",
            "time a node",
            choices=LOOPS,
            help=f"One loop for the nodes and leaves of {ray_type} rays, or two, or as the frame "
            "says.",
        ),
        kernel_of(
            "stack",
            ray_type,
            "stack",
            "time a node",
            choices=STACKS,
            help=f"Entries of a {ray_type} ray's stack to begin with, or as the frame says.",
        ),
    )


OPTIONS: tuple[Option, ...] = (
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
    of_frame(
        "gbuffer",
        "G-buffer",
        "choice",
        "frame",
        "raster",
        choices=GBUFFERS,
        help="What each pixel sees first, by the rasteriser or by rays.",
    ),
    of_frame(
        "roughness_cutoff",
        "roughness cutoff",
        "number",
        "view",
        "rays",
        help="Surfaces up to this roughness send a reflection ray.",
    ),
    of_frame(
        "reflection_scale",
        "reflection scale",
        "choice",
        "frame",
        "rays",
        choices=tuple(REFLECTION_BLOCKS),
        help="Reflection rays at the picture's size, or one for each 2x2 or 4x4 pixels.",
        follows=(
            ("queues", "a block of pixels is looked at once"),
            ("filters", "light of rays that are shared is upsampled"),
        ),
    ),
    of_frame(
        "upsample",
        "upsampling",
        "choice",
        "frame",
        "filters",
        choices=UPSAMPLES,
        help="What pixels without a reflection ray are shown: what rays nearby bring to surfaces "
        "like theirs, or their block's ray as it is.",
    ),
    of_frame(
        "reflection_bounces",
        "reflection bounces",
        "number",
        "frame",
        "rays",
        low=1,
        high=MOST_BOUNCES,
        step=1,
        help="The most rays of a path of reflections; what the last one hits reflects the "
        "environment.",
    ),
    of_frame(
        "history",
        "history",
        "number",
        "frame",
        "filters",
        high=MOST_HISTORY,
        step=1,
        help="Frames that light is remembered for while things move, found by motion vectors; 0: "
        "none.",
        follows=(("raster", "motion vectors are drawn for it"),),
    ),
    of_frame(
        "denoiser",
        "denoiser",
        "number",
        "frame",
        "filters",
        high=MOST_DENOISER,
        step=1,
        help="Rounds of a filter that smooths noise between edges, each twice as wide; 0: none.",
    ),
    of_frame(
        "reflections",
        "reflections",
        "choice",
        "frame",
        "rays",
        choices=REFLECTIONS,
        help="Reflections by rays, or found on the screen and in a probe.",
        follows=(("raster", "they are found in the picture and in a probe"),),
    ),
    of_frame(
        "screen_steps",
        "screen steps",
        "number",
        "frame",
        "raster",
        low=1,
        high=MOST_SCREEN_STEPS,
        step=1,
        help="How many steps a reflection may take over the screen; a longer way has longer steps.",
    ),
    of_frame(
        "probe_size",
        "probe size",
        "choice",
        "frame",
        "raster",
        choices=PROBE_SIZES,
        help="Pixels a side of the probe that shows what a reflection does not find on the screen.",
    ),
    of_frame(
        "probe_position",
        "probe position",
        "choice",
        "frame",
        "raster",
        choices=PROBE_POSITIONS,
        help="Where the probe stands: at the camera, or in the middle of the scene's box.",
    ),
    of_frame(
        "shadows",
        "shadows",
        "choice",
        "frame",
        "rays",
        choices=SHADOWS,
        help="The light's shadows by rays, or by a map of depths that is drawn from it.",
        follows=(("raster", "a map of depths is drawn"),),
    ),
    of_frame(
        "shadow_map_size",
        "shadow map size",
        "choice",
        "frame",
        "raster",
        choices=SHADOW_MAP_SIZES,
        help="Pixels a side of each of the shadow map's five faces.",
    ),
    of_frame(
        "rough_fallback",
        "rough fallback",
        "choice",
        "frame",
        "raster",
        choices=ROUGH_FALLBACKS,
        help="What surfaces too rough for a reflection ray show: the environment in one direction, "
        "its mean over their lobe, or a probe.",
    ),
    of_frame(
        "shadow_rays",
        "shadow rays",
        "number",
        "frame",
        "rays",
        low=1,
        high=MOST_SHADOW_RAYS,
        step=1,
        help="Shadow rays that a surface sends: to each light in turn, or to lights drawn where "
        "there are more.",
    ),
    of_frame(
        "light_choice",
        "light choice",
        "choice",
        "frame",
        "rays",
        choices=LIGHT_CHOICES,
        help="Of more lights than shadow rays: drawn by what they might bring, or all alike.",
    ),
    of_frame(
        "any_hit",
        "any-hit",
        "choice",
        "frame",
        "any-hit",
        choices=tuple(ANY_HITS),
        help="What rays do where a triangle may have a hole: test it, take it for opaque, or "
        "reject it untested, the worst case.",
    ),
    of_frame(
        "occlusion",
        "ambient occlusion",
        "flag",
        "frame",
        "rays",
        help="An occlusion ray a pixel: ambient light arrives where nothing near is in its way.",
    ),
    of_frame(
        "occlusion_radius",
        "occlusion radius",
        "number",
        "view",
        "nodes",
        high=50.0,
        step=0.05,
        help="How far occlusion rays reach, metres; 0: a part of the scene's size.",
        follows=(("any-hit", "rays that reach further meet more candidates"),),
    ),
    of_frame(
        "motion",
        "motion vectors",
        "flag",
        "frame",
        "raster",
        help="A pass for how far what each pixel shows has moved since the picture before.",
    ),
    of_frame(
        "any_hit_mode",
        "any-hit mode",
        "choice",
        "frame",
        "any-hit",
        choices=ANY_HIT_MODES,
        help="Where rays test for holes: inline, or in passes between rounds of traversal.",
        follows=(("nodes", "rays whose candidate was rejected are traced again from the root"),),
    ),
    of_frame(
        "any_hit_rounds",
        "any-hit rounds",
        "number",
        "frame",
        "any-hit",
        low=1,
        high=MOST_ROUNDS,
        step=1,
        help="Rounds of traversal before the one that tests inline.",
    ),
    of_frame(
        "hit_table",
        "hit table",
        "choice",
        "frame",
        "hit shading",
        choices=HIT_TABLES,
        help="Where a hit finds its material: in one table, by way of its object, or in a record "
        "that each object has of its own.",
    ),
    of_frame(
        "traversal",
        "traversal",
        "choice",
        "frame",
        "time a node",
        choices=TRAVERSALS,
        help="Our own arithmetic, or every node through the instruction as defined (slow).",
        follows=(OTHER_ORDER,),
    ),
    of_frame(
        "while_while",
        "while-while",
        "flag",
        "frame",
        "time a node",
        help="Two inner loops, for nodes and for leaves, instead of one.",
    ),
    of_frame(
        "sort_shadow",
        "sort shadow rays' nodes",
        "flag",
        "frame",
        "nodes",
        help="Nearest child first for any-hit rays, too.",
        follows=(OTHER_ORDER,),
    ),
    of_frame(
        "passes",
        "passes",
        "choice",
        "frame",
        "time a node",
        choices=PASSES,
        help="Each ray type traced in a pass of its own, or those that do not wait for each other "
        "mixed in one.",
    ),
    of_frame(
        "compaction",
        "compaction",
        "choice",
        "frame",
        "queues",
        choices=COMPACTIONS,
        help="How rays get their places in a queue: votes in workgroup memory, or prefix sums by "
        "subgroup, where the adapter has them.",
    ),
    of_frame(
        "ray_sort",
        "ray sort",
        "choice",
        "frame",
        "time a node",
        choices=RAY_SORTS,
        help="Rays in the order of their octant and of where they start (Morton code, 4 or 9 bits "
        "an axis) before they are traced.",
        follows=(("queues", "the sort has passes of its own"),),
    ),
    of_frame(
        "sorted_rays",
        "sorted rays",
        "choice",
        "frame",
        "time a node",
        choices=(EVERY_TYPE, *(ray.name for ray in RAY_TYPES)),
        help="Which ray types a ray sort is for.",
    ),
    of_frame(
        "hit_sort",
        "hit sort",
        "choice",
        "frame",
        "hit shading",
        choices=HIT_SORTS,
        help="Hits of one material next to each other before they are shaded.",
    ),
    of_frame(
        "stack",
        "stack",
        "choice",
        "frame",
        "time a node",
        choices=STACK_SIZES,
        help="Entries of a ray's stack to begin with; a frame that needs more is drawn again.",
    ),
    *(mask_of(name) for name in (PRIMARY, *(ray.name for ray in RAY_TYPES))),
    *(option for ray in RAY_TYPES for option in kernel_options(ray.name)),
    of_frame(
        "count",
        "counters",
        "flag",
        "frame",
        "none",
        help="Counts what rays visit, in a frame of its own beside the timed one.",
    ),
    of_frame(
        "count_lanes",
        "count lanes",
        "flag",
        "frame",
        "none",
        help="Counts lanes of subgroups in the counted frame, too: how many are at work together, "
        "and how many nodes they fetch. Slower.",
    ),
    of_frame(
        "exposure",
        "exposure",
        "number",
        "view",
        "none",
        low=0.05,
        high=20.0,
        step=0.05,
        help="Factor of the light before it is tone-mapped.",
    ),
    of_frame(
        "seed",
        "seed",
        "number",
        "view",
        "none",
        high=999,
        step=1,
        help="Of every random number in the frame.",
    ),
    of_frame(
        "sampler",
        "sampler",
        "choice",
        "view",
        "none",
        choices=SAMPLERS,
        help="Random numbers: each by itself, blue noise between pixels, or a Sobol sequence a "
        "pixel.",
    ),
)


def find_option(name: str) -> Option:
    """The option of that name. UserError where there is none."""
    for option in OPTIONS:
        if option.name == name:
            return option
    raise UserError(f"no option is named '{name}'; known: {', '.join(o.name for o in OPTIONS)}")


def changed(old: ViewSettings, new: ViewSettings) -> tuple[Option, ...]:
    """The options whose values differ."""
    return tuple(option for option in OPTIONS if option.get(old) != option.get(new))
