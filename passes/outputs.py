"""What of a frame can be looked at, by name. The list follows from the frame: a ray type adds what
it brought (its `light_shader`) and, in counted frames, a plane for each count, which are summed up
over the bounces of a family and over all types, too; a new pass adds its line to `PASS_OUTPUTS`.
Viewers and commands loop over it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from passes.frame_options import FrameOptions
from passes.rays import RAY_TYPES, RayType, frame_rays
from passes.rays.ray_sum import RaySum, with_sums
from passes.slot_counts import COUNT_LABELS, SLOT_COUNTS

Kind = Literal["colour", "scalar", "id", "vector", "count"]
COUNT_SHADER = "passes/shaders/display_counts.wgsl"
SURFACE_SHADER = "passes/shaders/display_surface.wgsl"


@dataclass(frozen=True, slots=True)
class Output:
    """`name` is unique and stays; `label` is for people. `unit` of a value, "" for none. `ray_type`
    is whose it is, of counts maybe a RaySum's name.
    `shader` is the stage that shows it: see passes/display.py. `light`: of filters, whose it is."""

    name: str
    label: str
    kind: Kind
    unit: str = ""
    ray_type: str | None = None
    shader: str = SURFACE_SHADER
    light: str | None = None

    @property
    def count(self) -> str | None:
        """Which of SLOT_COUNTS it is, None if none."""
        return self.name.partition("/")[0] if self.kind == "count" else None


PASS_OUTPUTS = (
    Output("picture", "picture", "colour", shader="passes/shaders/display_picture.wgsl"),
    Output("depth", "depth", "scalar", "m"),
    Output("normal", "normal", "vector"),
    Output("roughness", "roughness", "scalar"),
    Output("metalness", "metalness", "scalar"),
    Output("base_color", "base colour", "colour"),
    Output("material", "material", "id"),
    Output("object", "object", "id"),
    Output("primitive", "triangle", "id"),
)

# Of each light: what is remembered of it, and what filters made of it (passes/light_history.py).
HISTORIES = tuple(
    Output(
        f"history_{light}",
        f"history of {label}",
        "scalar",
        "frames",
        shader="passes/shaders/display_history.wgsl",
        light=light,
    )
    for light, label in (("reflection", "reflections"), ("direct", "direct light"))
)
FILTERED = tuple(
    Output(
        f"filtered_{light}",
        f"{label}, filtered",
        "colour",
        shader="passes/shaders/display_filtered.wgsl",
        light=light,
    )
    for light, label in (("reflection", "reflections"), ("direct", "direct light"))
)
MOTION = Output("motion", "motion", "vector", "pixels", shader="passes/shaders/display_motion.wgsl")


def _light_shader(options: FrameOptions, ray: RayType) -> str:
    return (options.lights_apart and ray.apart_shader) or ray.light_shader


def counted_rays(rays: tuple[RayType, ...], output: Output) -> RayType | RaySum:
    """Whose counts an output of a frame with these types shows."""
    return next(ray for ray in with_sums(rays) if ray.name == output.ray_type)


@lru_cache(maxsize=16)
def frame_outputs(options: FrameOptions) -> tuple[Output, ...]:
    """Every output of a frame with these options, in the order of a menu."""
    rays = frame_rays(options)
    light = tuple(
        Output(ray.name, f"{ray.name} light", "colour", "", ray.name, _light_shader(options, ray))
        for ray in RAY_TYPES
        if ray.is_shown(options)
    )
    counts = tuple(
        Output(f"{count}/{ray.name}", label, "count", unit, ray.name, COUNT_SHADER)
        for ray in with_sums(rays)
        for count, (label, unit) in ((name, COUNT_LABELS[name]) for name in SLOT_COUNTS)
    )
    filters = HISTORIES * (options.history > 0) + FILTERED * options.filtered
    shown = PASS_OUTPUTS + (MOTION,) * options.finds_motion + light + filters
    return shown + counts * options.count
