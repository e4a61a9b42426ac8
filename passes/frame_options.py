"""What a hybrid frame is built with; a change of any of these makes new pipelines or buffers."""

from dataclasses import dataclass

from bvh.gpu.trace_rays import STACK_SIZES

GBUFFERS = ("raster", "rays")


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """`width` and `height` in pixels. `roughness_cutoff`: smoother surfaces send a reflection
    ray. `count` builds counted pipelines: their counts are true, their times are not.
    `queue_fraction` scales the queues' capacity; below 1 rays may be dropped (and counted).
    `stack` is the entries of a traversal stack that the frame starts with (one of STACK_SIZES).
    `traversal` is one of bvh.gpu.trace_rays.TRAVERSALS: "contract" sends every node through the
    instruction."""

    width: int
    height: int
    seed: int = 0
    gbuffer: str = "raster"
    roughness_cutoff: float = 0.6
    exposure: float = 1.0
    count: bool = False
    sort_shadow: bool = False
    while_while: bool = False
    queue_fraction: float = 1.0
    stack: int = STACK_SIZES[0]
    traversal: str = "fast"
