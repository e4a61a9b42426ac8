"""Ray types mixed in one dispatch (option `passes`), and what it takes from whom.

Two queues whose rays do not wait for each other's results are drained together: reflection rays
with the shadow rays of visible surfaces, then the shadow rays of reflection hits, which shading has
pushed meanwhile, with occlusion rays. A queue's header says how many of its records are `drained`.
The workgroups of one queue come before those of the other: lanes of a workgroup are of one type.

Counted frames trace types apart, since what a ray visits does not depend on it and two types'
counters do not fit into a stage's eight storage buffers. So do frames whose rays wait for alpha
tests (`passes.candidates`): their rounds have queues of their own.
"""

from engine.gpu.structs import Field, Struct
from passes.candidates import round_count
from passes.frame_options import FrameOptions

MIXED_ARGUMENTS = Struct(
    "MixedArguments",
    Field("x", "u32"),  # group counts of the indirect dispatch
    Field("y", "u32"),
    Field("z", "u32"),
    Field("first_groups", "u32"),  # of them, those of the first queue
    Field("first_begin", "u32"),  # records of the first queue that are drained
    Field("first_end", "u32"),
    Field("other_begin", "u32"),
    Field("other_end", "u32"),
)
MIXED = ("mixed_0", "mixed_1")  # the dispatches, as resources are named after them


def wgsl() -> str:
    return MIXED_ARGUMENTS.wgsl()


def mixes(options: FrameOptions, asks: bool) -> bool:
    """Whether a frame mixes ray types; `asks`: whether a triangle's alpha is to be tested."""
    both = options.reflections == options.shadows == "rays"
    mixed = options.passes == "mixed" and both and not options.count
    return mixed and not round_count(options, asks)
