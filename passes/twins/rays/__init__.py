"""Twins of the ray types' record shaders, by ray type name."""

from types import ModuleType

from passes.twins.rays import reflection, shadow

RECORD_TWINS: dict[str, ModuleType] = {"reflection": reflection, "shadow": shadow}
