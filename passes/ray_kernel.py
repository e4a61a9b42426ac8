"""The traversal kernel of one ray type, where it is not the one that the whole frame has.

Which order of visits, which loop and which stack are fastest depends on the rays, the scene and
the adapter: `treeline tune` measures it. None of the three changes what rays hit.
"""

from dataclasses import dataclass

from bvh.gpu.default_kernel import LOOPS as LOOP_COUNTS
from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.trace_rays import STACK_SIZES
from engine.gpu.device import AdapterInfo
from engine.gpu.errors import UserError

AS_FRAME = "frame"  # what FrameOptions says for every ray type
BY_ADAPTER = "adapter"  # what bvh/gpu/default_kernel.py says of it
SORTS = (AS_FRAME, "on", "off")  # nearest child first, or in the order of slots
LOOPS = (AS_FRAME, *LOOP_COUNTS)
FRAME_LOOPS = (BY_ADAPTER, *LOOP_COUNTS)
# A frame does not begin with as few as the first, since deep scenes would draw it twice.
STACKS = (AS_FRAME, "16", *map(str, STACK_SIZES))


@dataclass(frozen=True, slots=True)
class RayKernel:
    """`sort` is one of SORTS, `loops` of LOOPS and `stack` of STACKS; UserError for others."""

    sort: str = AS_FRAME
    loops: str = AS_FRAME
    stack: str = AS_FRAME

    def __post_init__(self) -> None:
        for label, value, known in (
            ("sort", self.sort, SORTS),
            ("loops", self.loops, LOOPS),
            ("stack", self.stack, STACKS),
        ):
            if value not in known:
                raise UserError(f"unknown {label} '{value}', there are {', '.join(known)}")


def loops_here(loops: str, adapter: AdapterInfo) -> str:
    """How many a kernel has, of LOOP_COUNTS; `loops` is one of FRAME_LOOPS."""
    return default_kernel(adapter).loops if loops == BY_ADAPTER else loops
