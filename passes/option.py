"""What an option is, and the settings that options are read from and put in."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bvh.blas import BuildOptions
from engine.gpu.errors import UserError
from passes.frame_options import FULL_MASK, FrameOptions
from passes.grouping import GROUPS

KINDS = ("choice", "number", "flag", "bits")
# What a change makes anew. view: nothing, the next frame has it. frame: pipelines or buffers of
# the frame. build: the BVH. scene: its meshes' grouping, and the BVH.
SCOPES = ("view", "frame", "build", "scene")
# The term of the frame's cost that an option claims to change: what a ray visits, what a visit
# takes, how many rays there are, what it takes to put them into queues, what a hit takes to shade
# or to test, what it takes to build; what the rasteriser takes (G-buffer, motion vectors, shadow
# maps, probes, reflections out of the picture), and what upsampling and filtering light takes.
COST_TERMS = (
    "nodes",
    "time a node",
    "rays",
    "queues",
    "hit shading",
    "any-hit",
    "build and update",
    "layout bytes",
    "raster",
    "filters",
    "none",
)
# What follows wherever rays visit the tree's nodes in another order (`Option.follows`).
OTHER_ORDER = ("any-hit", "another order of visits meets other candidates first")


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """All that decides a frame but its size, its view and the scene. `frame`'s width and height
    mean nothing here."""

    frame: FrameOptions = field(default_factory=lambda: FrameOptions(0, 0, count=True))
    build: BuildOptions = BuildOptions()
    group: str = GROUPS[0]


@dataclass(frozen=True, slots=True)
class Need:
    """What other options must be for one to change anything: in one of `ways`, each a field of
    FrameOptions and the values that do. `text` goes on after "needs", in few letters, as it stands
    in a narrow column."""

    text: str
    ways: tuple[tuple[str, tuple[Any, ...]], ...]

    def met(self, frame: FrameOptions) -> bool:
        return any(getattr(frame, name) in values for name, values in self.ways)


@dataclass(frozen=True, slots=True)
class Option:
    """One setting. `choices` for a choice; `low`, `high` and `step` for a number (a step of whole
    numbers means that it is one). Bits are eight, one a group of instances. `follows`: terms that
    change with `cost_term`, each with the reason why they must. Where one of `needs` is not met the
    frame is the same whatever the value. `section` is the heading that lists have it under."""

    name: str
    label: str
    kind: str
    scope: str
    cost_term: str
    help: str
    get: Callable[[ViewSettings], Any]
    put: Callable[[ViewSettings, Any], ViewSettings]
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 0.01
    follows: tuple[tuple[str, str], ...] = ()
    needs: tuple[Need, ...] = ()
    section: str = ""

    def lacks(self, frame: FrameOptions) -> Need | None:
        """The first of its needs that a frame does not meet."""
        return next((need for need in self.needs if not need.met(frame)), None)

    def set(self, settings: ViewSettings, value: Any) -> ViewSettings:
        """The settings with this value. UserError for one that is not allowed."""
        if self.kind == "choice" and value not in self.choices:
            there = ", ".join(map(str, self.choices))
            raise UserError(f"{self.label} is one of {there}, not {value}")
        if self.kind in ("number", "bits") and not self.low <= value <= self.high:
            raise UserError(f"{self.label} is {self.low:g} to {self.high:g}, not {value:g}")
        return self.put(settings, value)

    def text(self, settings: ViewSettings) -> str:
        """The value as a person reads it."""
        value = self.get(settings)
        if self.kind == "bits":
            return f"{value:08b}"
        if self.kind == "flag":
            return "on" if value else "off"
        return f"{value:g}" if self.kind == "number" else str(value)


def of_frame(name: str, label: str, kind: str, scope: str, term: str, **more: Any) -> Option:
    """An option that is the field `name` of FrameOptions."""

    def put(settings: ViewSettings, value: Any) -> ViewSettings:
        return replace(settings, frame=replace(settings.frame, **{name: value}))

    return Option(
        name, label, kind, scope, term, get=lambda s: getattr(s.frame, name), put=put, **more
    )


def of_build(name: str, label: str, kind: str, term: str, **more: Any) -> Option:
    """An option that is the field `name` of BuildOptions."""

    def put(settings: ViewSettings, value: Any) -> ViewSettings:
        return replace(settings, build=replace(settings.build, **{name: value}))

    return Option(
        name, label, kind, "build", term, get=lambda s: getattr(s.build, name), put=put, **more
    )


def of_settings(name: str, label: str, scope: str, term: str, **more: Any) -> Option:
    """A choice that is the field `name` of ViewSettings."""

    def put(settings: ViewSettings, value: Any) -> ViewSettings:
        return replace(settings, **{name: value})

    return Option(
        name, label, "choice", scope, term, get=lambda s: getattr(s, name), put=put, **more
    )


def mask_of(ray_type: str, needs: tuple[Need, ...] = ()) -> Option:
    def put(settings: ViewSettings, value: int) -> ViewSettings:
        return replace(settings, frame=settings.frame.with_mask(ray_type, value))

    return Option(
        f"mask/{ray_type}",
        f"{ray_type} mask",
        "bits",
        "frame",
        "nodes",
        f"Instances that {ray_type} rays see: those whose mask shares a bit.",
        get=lambda s: s.frame.mask(ray_type),
        put=put,
        high=FULL_MASK,
        step=1,
        needs=needs,
        follows=(
            ("rays", "what sees past an instance ends elsewhere, and other rays start there"),
            ("any-hit", "an instance that is not seen has no candidates"),
        ),
    )


def kernel_of(field: str, ray_type: str, label: str, term: str, **more: Any) -> Option:
    """A choice that is the field `field` of a ray type's RayKernel."""

    def put(settings: ViewSettings, value: str) -> ViewSettings:
        kernel = replace(settings.frame.kernel(ray_type), **{field: value})
        return replace(settings, frame=settings.frame.with_kernel(ray_type, kernel))

    return Option(
        f"kernel_{field}/{ray_type}",
        f"{ray_type} {label}",
        "choice",
        "frame",
        term,
        get=lambda s: getattr(s.frame.kernel(ray_type), field),
        put=put,
        **more,
    )
