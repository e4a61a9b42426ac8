"""Shadow rays to the area light, from visible surfaces and from reflection hits, any-hit.

A record holds the sampled point of the light, not a direction: 20 bytes against the reflection
ray's 32. Its slot is the surface's that it starts from (passes/shadow_slots.py).
"""

from dataclasses import replace
from typing import Any

from engine.gpu.structs import Field, Struct
from passes.rays.ray_type import RayType
from passes.shadow_slots import ONE_RAY, shadow_slots

SHADOW_RECORD = Struct(
    "ShadowRay",
    Field("origin", "f32", 3),
    # 2 x 16-bit unorm across the light; of several lights 2 x 14 bits, and 4 that say which
    Field("light_uv", "u32"),
    Field("slot", "u32"),
)


def goes_to(record: Any, frame: Any) -> str:
    """Which of several lights (passes/shaders/light.wgsl), 1 and on as in the scene."""
    lights = int(frame["light_count"])
    return f" to light {(int(record['light_uv']) >> 28) + 1} of {lights}" if lights > 1 else ""


SHADOW = RayType(
    name="shadow",
    record=SHADOW_RECORD,
    any_hit=True,
    record_shader="passes/shaders/rays/shadow.wgsl",
    generator_shader="passes/shaders/shadow.wgsl",
    light_shader="passes/shaders/display_shadow.wgsl",
    starts_at=ONE_RAY.starts_at,
    results_by_slot=True,
    choice="shadows",
    goes_to=goes_to,
    silence=lambda inputs: replace(
        inputs, light=replace(inputs.light, radiance=(0.0, 0.0, 0.0)), more_lights=()
    ),
    starts_with=lambda options: shadow_slots(options).starts_at,
)


def wgsl() -> str:
    return SHADOW_RECORD.wgsl()
