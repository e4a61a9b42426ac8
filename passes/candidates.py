"""Candidates: hits on triangles that may have a hole there, on their way to the alpha test.

A ray type's rays are traced in rounds. A round takes a candidate untested for the hit of its ray,
which then waits: an any-hit ray ends there, a closest-hit ray goes on to nearer ones. A pass of its
own tests all that wait. What it accepts is the ray's hit; rays that it does not accept are traced
again in the next round, from the root, and go on behind the rejected triangle in the order of
visits. The last round tests inline, so that every ray ends.

No hit is lost or doubled, since all rounds visit in the same order as an inline trace does:
children are ordered by where a ray enters them, which no candidate changes; what a nearer hit
prunes could not have held a nearer one. Closest-hit rays refuse what is in front of the rejected
triangle, and at equal t what they visit up to it; any-hit rays all candidates that they visit up to
it.
"""

from engine.gpu.structs import Field, Struct
from passes.frame_options import FrameOptions

CANDIDATE = Struct(
    "Candidate",
    Field("ray", "u32"),  # its index in the ray queue
    Field("t", "f32"),
    Field("u", "f32"),
    Field("v", "f32"),
    Field("object", "u32"),
    Field("primitive", "u32"),
    Field("instance", "u32"),
    Field("place", "u32"),  # 64-byte unit of the block << 2 | triangle
)


def wgsl() -> str:
    return CANDIDATE.wgsl()


def queue_names(ray: str, number: int) -> tuple[str, str]:
    """Of round `number`: what waits for the test, and what it rejected."""
    return f"{ray}_candidates_{number}", f"{ray}_rejected_{number}"


def round_count(options: FrameOptions, asks: bool) -> int:
    """Rounds before the last one; 0 where rays test inline, or nothing asks (`asks`)."""
    queued = options.any_hit_mode == "queue" and options.any_hit == "test"
    return options.any_hit_rounds if queued and asks and options.traversal == "fast" else 0
