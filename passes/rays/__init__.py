"""The frame's ray types, in the order they are traced."""

from dataclasses import replace
from typing import Any

from passes.frame_options import FrameOptions
from passes.rays.occlusion import OCCLUSION
from passes.rays.ray_type import RayType
from passes.rays.reflection import REFLECTION
from passes.rays.shadow import SHADOW

RAY_TYPES: tuple[RayType, ...] = (REFLECTION, SHADOW, OCCLUSION)


def frame_rays(options: FrameOptions) -> tuple[RayType, ...]:
    """The types whose rays a frame with these options sends."""
    return tuple(ray.of(options) for ray in RAY_TYPES if ray.is_sent(options))


def with_every_ray(options: FrameOptions) -> FrameOptions:
    """The same with the rays of every type."""
    flags: dict[str, Any] = {ray.option: True for ray in RAY_TYPES if ray.option}
    choices: dict[str, Any] = {ray.choice: "rays" for ray in RAY_TYPES if ray.choice}
    return replace(options, **flags, **choices)


__all__ = [
    "OCCLUSION",
    "RAY_TYPES",
    "REFLECTION",
    "SHADOW",
    "RayType",
    "frame_rays",
    "with_every_ray",
]
