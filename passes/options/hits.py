"""What rays do at a triangle that may have a hole, and where a hit finds its material."""

from passes.frame_options import ANY_HIT_MODES, ANY_HITS, HIT_TABLES, MOST_ROUNDS
from passes.option import Need, Option, of_frame
from passes.options.needs import QUEUES, REFLECTION_RAYS_SENT, TRAVERSAL_RUNS

# The instruction's traversal has no rounds.
ROUNDS = Need("fast traversal", (("traversal", ("fast",)),))
ALPHA_TESTS = Need("alpha tests", (("any_hit", ("test",)),))

ANY_HIT: tuple[Option, ...] = (
    of_frame(
        "any_hit",
        "any-hit",
        "choice",
        "frame",
        "any-hit",
        choices=tuple(ANY_HITS),
        needs=(TRAVERSAL_RUNS,),
        help="What rays do where a triangle may have a hole: test it, take it for opaque, or "
        "reject it untested, the worst case.",
    ),
)

ANY_HIT_PASSES: tuple[Option, ...] = (
    of_frame(
        "any_hit_mode",
        "any-hit mode",
        "choice",
        "frame",
        "any-hit",
        choices=ANY_HIT_MODES,
        needs=(QUEUES, ALPHA_TESTS, ROUNDS),
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
        needs=(QUEUES, ALPHA_TESTS, ROUNDS, Need("queue mode", (("any_hit_mode", ("queue",)),))),
        help="Rounds of traversal before the one that tests inline.",
    ),
)

HIT_TABLE: tuple[Option, ...] = (
    of_frame(
        "hit_table",
        "hit table",
        "choice",
        "frame",
        "hit shading",
        choices=HIT_TABLES,
        needs=(REFLECTION_RAYS_SENT,),
        help="Where a hit finds its material: in one table, by way of its object, or in a record "
        "that each object has of its own.",
    ),
)
