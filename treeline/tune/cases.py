"""What a tuned frame may change: how its structure is grouped and built, and each ray type's
kernel.

One structure serves all ray types, so it is chosen for all of them together; kernels are chosen a
type. Reading the same bytes two children at a time is not among the choices: such a
kernel has not been shown to visit and hit the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from bvh.blas import BuildOptions
from bvh.build_defaults import LEAF_SIZES, NODE_FORMATS
from bvh.gpu.trace_rays import STACK_SIZES
from passes.frame_options import FrameOptions
from passes.grouping import GROUPS
from passes.ray_kernel import AS_FRAME, LOOP_COUNTS, RayKernel

GROUP = "group"
# Of a structure, in the order in which they are tried: what has gained most comes first, so that a
# short search has met it.
AXES: Mapping[str, tuple[Any, ...]] = {
    GROUP: ("all", "object", "static"),
    "builder": ("spatial", "sah", "ploc", "lbvh"),
    "leaf": LEAF_SIZES,
    "nodes": NODE_FORMATS,
    "reinsertion": (60, 10, 30, 0),
}
STACKS = ("16", "32", "64")
Kernels = Mapping[str, RayKernel]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a scene's structure is made: its grouping (`passes.grouping`) and its build."""

    build: BuildOptions
    group: str = GROUPS[0]

    def value(self, axis: str) -> Any:
        return self.group if axis == GROUP else getattr(self.build, axis)

    def changed(self, axis: str, value: Any) -> "Recipe":
        if axis == GROUP:
            return replace(self, group=value)
        return replace(self, build=replace(self.build, **{axis: value}))

    def changes(self, base: "Recipe") -> dict[str, Any]:
        """The fields in which it differs, and their values."""
        found = asdict(self.build) | {GROUP: self.group}
        of_base = asdict(base.build) | {GROUP: base.group}
        return {name: found[name] for name in (GROUP, *found) if found[name] != of_base[name]}


@dataclass(frozen=True, slots=True)
class Case:
    """A structure, and the kernels of the ray types that do not have the frame's (sorted by
    name)."""

    recipe: Recipe
    kernels: tuple[tuple[str, RayKernel], ...] = ()

    @staticmethod
    def of(recipe: Recipe, kernels: Kernels) -> "Case":
        options = FrameOptions(0, 0)
        for name, kernel in kernels.items():
            options = options.with_kernel(name, kernel)
        return Case(recipe, options.kernels)

    def facts(self) -> dict[str, Any]:
        """In JSON's types."""
        return {
            "group": self.recipe.group,
            "build": asdict(self.recipe.build),
            "kernels": {name: asdict(kernel) for name, kernel in self.kernels},
        }

    def text(self, base: Recipe) -> str:
        return f"{recipe_text(self.recipe, base)}; kernels {kernels_text(self.kernels)}"


def kernel_choices(any_hit: bool, default_loops: str) -> list[RayKernel]:
    """Every kernel of a ray type, those that change least first; what equals the frame's default
    on this adapter is RayKernel(). All types' have their stacks in the same order: types are raced
    side by side, and where one overflows nothing is known of the other."""
    stack = str(STACK_SIZES[0])
    # Three are for drivers that run lanes under a mask, which have them by default.
    counts = LOOP_COUNTS if default_loops == LOOP_COUNTS[-1] else LOOP_COUNTS[:-1]
    choices = list(product((False, True), counts, STACKS))  # whether sorted otherwise, loops, stack
    choices.sort(key=lambda c: c[0] + (c[1] != default_loops) + (c[2] != stack))
    found = [RayKernel("on" if other == any_hit else "off", *more) for other, *more in choices]
    return [RayKernel(), *found[1:]]


def recipe_count() -> int:
    """Of all values of all axes."""
    return math.prod(len(values) for values in AXES.values())


def recipe_text(recipe: Recipe, base: Recipe) -> str:
    changed = recipe.changes(base)
    return ", ".join(f"{name} {value}" for name, value in changed.items()) or "as the default"


def kernel_text(kernel: RayKernel) -> str:
    parts = {
        "sort": {"on": "sorted", "off": "unsorted"}.get(kernel.sort),
        "loops": {"one": "one loop", "two": "two loops", "three": "three loops"}.get(kernel.loops),
        "stack": None if kernel.stack == AS_FRAME else f"stack of {kernel.stack}",
    }
    return ", ".join(text for text in parts.values() if text) or "as the default"


def kernels_text(kernels: Sequence[tuple[str, RayKernel]]) -> str:
    texts = [f"{name}: {kernel_text(kernel)}" for name, kernel in kernels]
    return "; ".join(texts) or "as the default"
