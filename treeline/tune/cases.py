"""What a tuned frame may change: how its structure is built, and each ray type's kernel.

One structure serves all ray types, so a build is chosen for all of them together; kernels are
chosen a type. Reading the same bytes two children at a time is not among the choices: such a
kernel has not been shown to visit and hit the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from typing import Any

from bvh.blas import BuildOptions
from bvh.build_defaults import LEAF_SIZES, NODE_FORMATS
from bvh.builders import BUILDERS
from bvh.gpu.trace_rays import STACK_SIZES
from passes.frame_options import FrameOptions
from passes.ray_kernel import AS_FRAME, LOOP_COUNTS, RayKernel

AXES: Mapping[str, tuple[Any, ...]] = {
    "nodes": NODE_FORMATS,
    "leaf": LEAF_SIZES,
    "builder": tuple(builder.name for builder in BUILDERS),
    "reinsertion": (0, 10, 30, 60),
}
STACKS = ("16", "32", "64")
Kernels = Mapping[str, RayKernel]


@dataclass(frozen=True, slots=True)
class Case:
    """A build, and the kernels of the ray types that do not have the frame's (sorted by name)."""

    build: BuildOptions
    kernels: tuple[tuple[str, RayKernel], ...] = ()

    @staticmethod
    def of(build: BuildOptions, kernels: Kernels) -> "Case":
        options = FrameOptions(0, 0)
        for name, kernel in kernels.items():
            options = options.with_kernel(name, kernel)
        return Case(build, options.kernels)

    def facts(self) -> dict[str, Any]:
        """In JSON's types."""
        return {
            "build": asdict(self.build),
            "kernels": {name: asdict(kernel) for name, kernel in self.kernels},
        }


def kernel_choices(any_hit: bool, default_loops: str) -> list[RayKernel]:
    """Every kernel of a ray type, in an order that types share; what equals the frame's default on
    this adapter is RayKernel()."""
    default = RayKernel("off" if any_hit else "on", default_loops, str(STACK_SIZES[0]))
    # Three are for drivers that run lanes under a mask, which have them by default.
    counts = LOOP_COUNTS if default_loops == LOOP_COUNTS[-1] else LOOP_COUNTS[:-1]
    found = [RayKernel(*choice) for choice in product(("on", "off"), counts, STACKS)]
    return [RayKernel() if kernel == default else kernel for kernel in found]


def single_changes(base: BuildOptions) -> list[BuildOptions]:
    """Builds that differ from `base` along one axis."""
    return [
        replace(base, **{axis: value})
        for axis, values in AXES.items()
        for value in values
        if value != getattr(base, axis)
    ]


def changes(build: BuildOptions, base: BuildOptions) -> dict[str, Any]:
    """The fields in which a build differs."""
    return {
        field.name: getattr(build, field.name)
        for field in fields(BuildOptions)
        if getattr(build, field.name) != getattr(base, field.name)
    }


def combinations(base: BuildOptions) -> Iterator[BuildOptions]:
    """Builds that differ along two axes and more."""
    for values in product(*AXES.values()):
        build = replace(base, **dict(zip(AXES, values, strict=True)))
        if len(changes(build, base)) > 1:
            yield build


def build_text(build: BuildOptions, base: BuildOptions) -> str:
    changed = changes(build, base)
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
