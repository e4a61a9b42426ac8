"""The frame's ray types, in the order they are traced. RAY_TYPES are those that options name;
further bounces of reflections (passes/rays/bounce.py) go with the first."""

from dataclasses import replace
from typing import Any

from passes.frame_options import MOST_BOUNCES, FrameOptions
from passes.rays.bounce import bounce_type
from passes.rays.occlusion import OCCLUSION
from passes.rays.ray_type import RayType
from passes.rays.reflection import REFLECTION
from passes.rays.shadow import SHADOW

RAY_TYPES: tuple[RayType, ...] = (REFLECTION, SHADOW, OCCLUSION)
BOUNCES = tuple(bounce_type(bounce) for bounce in range(2, MOST_BOUNCES + 1))


def frame_rays(options: FrameOptions) -> tuple[RayType, ...]:
    """The types whose rays a frame with these options sends."""
    families = (ray for ray in RAY_TYPES if ray.is_sent(options))
    return tuple(
        ray.of(options)
        for first in families
        for ray in (first, *bounces_of(first, options.reflection_bounces))
    )


def reflection_types(options: FrameOptions) -> tuple[RayType, ...]:
    """The types of the frame's reflection rays, bounce by bounce; none without such rays."""
    return tuple(ray for ray in frame_rays(options) if ray.family == REFLECTION.name)


def bounces_of(ray: RayType, most: int) -> tuple[RayType, ...]:
    """The types of its further bounces, up to the `most`th."""
    return tuple(r for r in BOUNCES if r.bounce_of == ray.name and r.bounce <= most)


def family_of(name: str) -> str:
    """The type under which options know the rays of a type of that name."""
    return next((ray.family for ray in BOUNCES if ray.name == name), name)


def with_every_ray(options: FrameOptions) -> FrameOptions:
    """The same with the rays of every type."""
    flags: dict[str, Any] = {ray.option: True for ray in RAY_TYPES if ray.option}
    choices: dict[str, Any] = {ray.choice: "rays" for ray in RAY_TYPES if ray.choice}
    return replace(options, **flags, **choices)


__all__ = [
    "BOUNCES",
    "OCCLUSION",
    "RAY_TYPES",
    "REFLECTION",
    "SHADOW",
    "RayType",
    "bounces_of",
    "family_of",
    "frame_rays",
    "reflection_types",
    "with_every_ray",
]
