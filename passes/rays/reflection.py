"""Reflection rays: one a pixel whose roughness is at most the cutoff, closest-hit; at half or
quarter scale one a block of 2x2 or 4x4 pixels that has such a pixel."""

from dataclasses import replace

from engine.gpu.structs import Field, Struct
from passes.rays.ray_type import RayType

REFLECTION_RECORD = Struct(
    "ReflectionRay",
    Field("origin", "f32", 3),
    Field("pixel", "u32"),
    Field("direction", "f32", 3),  # unit
    Field("cone", "u32"),  # 2 x f16: width at the origin, spread in radians
)

REFLECTION = RayType(
    name="reflection",
    record=REFLECTION_RECORD,
    any_hit=False,
    record_shader="passes/shaders/rays/reflection.wgsl",
    generator_shader="passes/shaders/reflection.wgsl",
    light_shader="passes/shaders/display_reflection.wgsl",
    apart_shader="passes/shaders/display_reflection_light.wgsl",
    starts_at=("primary",),
    slot_field="pixel",
    block="reflection_block",
    choice="reflections",
    silence=lambda inputs: replace(inputs, roughness_cutoff=-1.0),  # smoother than a mirror
)


def wgsl() -> str:
    return REFLECTION_RECORD.wgsl()
