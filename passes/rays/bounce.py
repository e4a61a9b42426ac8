"""Further bounces: from what a reflection ray hit, where that is smooth enough, the path's next
ray, up to the frame's `reflection_bounces`. Each bounce is a type of its own, with a queue, counts
and times of its own; what options say of reflection rays holds for all of them.

A record carries what its path is worth so far: the product of the weights of all surfaces that it
left, which what its ray brings is multiplied with.
"""

from dataclasses import replace

from engine.gpu.structs import Field, Struct
from passes.frame_options import reflection_name
from passes.rays.ray_type import RayType
from passes.rays.reflection import REFLECTION, REFLECTION_RECORD

BOUNCE_RECORD = Struct(
    "BounceRay",
    *REFLECTION_RECORD.fields,
    Field("path", "u32", 2),  # 4 x f16: throughput, and 1 where the ray sees the lights themselves
)


def bounce_type(bounce: int) -> RayType:
    """Of a path's `bounce`th reflection ray, 2 and on."""
    return replace(
        REFLECTION,
        name=reflection_name(bounce),
        record=BOUNCE_RECORD,
        record_shader="passes/shaders/rays/bounce.wgsl",
        generator_shader="passes/shaders/bounce.wgsl",
        starts_at=(reflection_name(bounce - 1),),
        bounce=bounce,
        bounce_of=REFLECTION.name,
        silence=None,
    )


def wgsl() -> str:
    return BOUNCE_RECORD.wgsl()
