"""How rays go through the tree, all of them and by type, and what of that is counted."""

from bvh.gpu.trace_rays import STACK_SIZES, TRAVERSALS
from passes.frame_options import PRIMARY
from passes.option import OTHER_ORDER, Need, Option, kernel_of, mask_of, of_frame
from passes.options.needs import TRAVERSAL_RUNS, sent, some_sent
from passes.ray_kernel import FRAME_LOOPS, LOOPS, SORTS, STACKS
from passes.rays import RAY_TYPES, RayType

TRAVERSAL: tuple[Option, ...] = (
    of_frame(
        "traversal",
        "traversal",
        "choice",
        "frame",
        "time a node",
        choices=TRAVERSALS,
        needs=(TRAVERSAL_RUNS,),
        help="Our own arithmetic, or every node through the instruction as defined (slow).",
        follows=(OTHER_ORDER,),
    ),
    of_frame(
        "loops",
        "loops",
        "choice",
        "frame",
        "time a node",
        choices=FRAME_LOOPS,
        needs=(TRAVERSAL_RUNS,),
        help="One loop for nodes and leaves, an inner loop for nodes (two), an outer one for alpha "
        "tests (three), or what is fastest on this kind of adapter.",
    ),
    of_frame(
        "sort_shadow",
        "sort shadow rays' nodes",
        "flag",
        "frame",
        "nodes",
        needs=(some_sent("any-hit rays", (ray for ray in RAY_TYPES if ray.any_hit)),),
        help="Nearest child first for any-hit rays, too.",
        follows=(OTHER_ORDER,),
    ),
)

STACK: tuple[Option, ...] = (
    of_frame(
        "stack",
        "stack",
        "choice",
        "frame",
        "time a node",
        choices=STACK_SIZES,
        needs=(TRAVERSAL_RUNS,),
        help="Entries of a ray's stack to begin with; a frame that needs more is drawn again.",
    ),
)


MASKS: tuple[Option, ...] = (
    mask_of(PRIMARY),
    # What is found on the screen or in a map keeps to the masks, too.
    *(mask_of(ray.name, () if ray.choice else sent(ray)) for ray in RAY_TYPES),
)


def kernel_options(ray: RayType) -> tuple[Option, ...]:
    """What a ray type's traversal kernel is built with."""
    ray_type, needs = ray.name, sent(ray)
    return (
        kernel_of(
            "sort",
            ray_type,
            "nodes' order",
            "nodes",
            choices=SORTS,
            help=f"Nearest child first for {ray_type} rays, or as the frame says.",
            follows=(OTHER_ORDER,),
            needs=needs,
        ),
        kernel_of(
            "loops",
            ray_type,
            "loops",
            "time a node",
            choices=LOOPS,
            help=f"One loop for the nodes and leaves of {ray_type} rays, two or three, or as the "
            "frame says.",
            needs=needs,
        ),
        kernel_of(
            "stack",
            ray_type,
            "stack",
            "time a node",
            choices=STACKS,
            help=f"Entries of a {ray_type} ray's stack to begin with, or as the frame says.",
            needs=needs,
        ),
    )


KERNELS: tuple[Option, ...] = tuple(option for ray in RAY_TYPES for option in kernel_options(ray))

COUNTERS: tuple[Option, ...] = (
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
        needs=(Need("counters", (("count", (True,)),)),),
    ),
)
