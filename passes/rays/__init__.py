"""The frame's ray types, in the order they are traced."""

from passes.rays.ray_type import RayType
from passes.rays.reflection import REFLECTION
from passes.rays.shadow import SHADOW

RAY_TYPES: tuple[RayType, ...] = (REFLECTION, SHADOW)

__all__ = ["RAY_TYPES", "REFLECTION", "SHADOW", "RayType"]
