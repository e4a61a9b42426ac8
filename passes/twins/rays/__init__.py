"""Twins of the ray types' record shaders, by ray type name."""

from importlib import import_module
from pathlib import PurePath
from types import ModuleType

from passes.rays import BOUNCES, RAY_TYPES

RECORD_TWINS: dict[str, ModuleType] = {
    ray.name: import_module(f"passes.twins.rays.{PurePath(ray.record_shader).stem}")
    for ray in (*RAY_TYPES, *BOUNCES)
}
