"""Occlusion rays: one a pixel, from the visible surface into its hemisphere, any-hit.

What they reach without a hit is open to the environment's light. They end after the frame's
`occlusion_radius`, so that walls far away do not darken a room. Cosine-weighted directions (Zhukov,
Iones, Kronin, "An Ambient Light Illumination Model", 1998, with a hard end): the mean of the
results is the part of the ambient light that arrives.
"""

from engine.gpu.structs import Field, Struct
from passes.rays.ray_type import RayType

OCCLUSION_RECORD = Struct(
    "OcclusionRay",
    Field("origin", "f32", 3),
    Field("direction", "u32"),  # octahedral, 2 x 16-bit snorm
    Field("pixel", "u32"),
)

OCCLUSION = RayType(
    name="occlusion",
    record=OCCLUSION_RECORD,
    any_hit=True,
    record_shader="passes/shaders/rays/occlusion.wgsl",
    generator_shader="passes/shaders/occlusion.wgsl",
    light_shader="passes/shaders/display_occlusion.wgsl",
    starts_at=("primary",),
    slot_field="pixel",
    results_by_slot=True,
    option="occlusion",
)


def wgsl() -> str:
    return OCCLUSION_RECORD.wgsl()
