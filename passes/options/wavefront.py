"""How rays and hits go through queues: passes, places in a queue, and sorts."""

from passes.frame_options import COMPACTIONS, EVERY_TYPE, HIT_SORTS, PASSES, RAY_SORTS
from passes.option import Need, Option, of_frame
from passes.options.needs import QUEUES, REFLECTION_RAYS_SENT, SHADOW_RAYS_SENT
from passes.rays import RAY_TYPES

WAVEFRONT: tuple[Option, ...] = (
    of_frame(
        "passes",
        "passes",
        "choice",
        "frame",
        "time a node",
        choices=PASSES,
        needs=(REFLECTION_RAYS_SENT, SHADOW_RAYS_SENT),
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
        needs=(QUEUES,),
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
        needs=(QUEUES,),
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
        needs=(QUEUES, Need("a ray sort", (("ray_sort", ("coarse", "fine")),))),
        help="Which ray types a ray sort is for.",
    ),
    of_frame(
        "hit_sort",
        "hit sort",
        "choice",
        "frame",
        "hit shading",
        choices=HIT_SORTS,
        needs=(REFLECTION_RAYS_SENT,),
        help="Hits of one material next to each other before they are shaded.",
    ),
)
