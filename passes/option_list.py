"""Every option that a user may change of a frame or a build, declared once.

The viewer's controls, their effect texts and random tests loop over `OPTIONS`; a new field of
`FrameOptions` or `BuildOptions` belongs here or on `NOT_FOR_USERS`, which a test holds complete.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from bvh.blas import BuildOptions
from bvh.build_defaults import COLLAPSES, LEAF_SIZES, NODE_FORMATS, PAIRINGS
from bvh.builders import BUILDERS
from bvh.gpu.trace_rays import STACK_SIZES, TRAVERSALS
from engine.gpu.errors import UserError
from passes.frame_options import FULL_MASK, GBUFFERS, UPDATES, FrameOptions
from passes.prepare import GROUPS
from passes.rays import RAY_TYPES

KINDS = ("choice", "number", "flag", "bits")
# What a change makes anew. view: nothing, the next frame has it. frame: pipelines or buffers of
# the frame. build: the BVH.
SCOPES = ("view", "frame", "build")
# The term of the frame's cost that an option claims to change: what a ray visits, what a visit
# takes, how many rays there are, what a hit takes to shade or to test, what it takes to build.
COST_TERMS = (
    "nodes",
    "time a node",
    "rays",
    "hit shading",
    "any-hit",
    "build and update",
    "layout bytes",
    "none",
)
# Sizes are the window's, and queues hold every ray unless a test wants them to overflow.
NOT_FOR_USERS = ("width", "height", "queue_fraction")


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """All that decides a frame but its size, its camera and the scene. `frame`'s width and height
    mean nothing here."""

    frame: FrameOptions = field(default_factory=lambda: FrameOptions(0, 0, count=True))
    build: BuildOptions = BuildOptions()
    group: str = GROUPS[0]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting. `choices` for a choice; `low`, `high` and `step` for a number (a step of whole
    numbers means that it is one). Bits are eight, one a group of instances."""

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


def _of_frame(name: str, label: str, kind: str, scope: str, term: str, **more: Any) -> Option:
    """An option that is the field `name` of FrameOptions."""

    def put(settings: ViewSettings, value: Any) -> ViewSettings:
        return replace(settings, frame=replace(settings.frame, **{name: value}))

    return Option(
        name, label, kind, scope, term, get=lambda s: getattr(s.frame, name), put=put, **more
    )


def _of_build(name: str, label: str, kind: str, term: str, **more: Any) -> Option:
    """An option that is the field `name` of BuildOptions."""

    def put(settings: ViewSettings, value: Any) -> ViewSettings:
        return replace(settings, build=replace(settings.build, **{name: value}))

    return Option(
        name, label, kind, "build", term, get=lambda s: getattr(s.build, name), put=put, **more
    )


def _of_settings(name: str, label: str, scope: str, term: str, **more: Any) -> Option:
    """A choice that is the field `name` of ViewSettings."""

    def put(settings: ViewSettings, value: Any) -> ViewSettings:
        return replace(settings, **{name: value})

    return Option(
        name, label, "choice", scope, term, get=lambda s: getattr(s, name), put=put, **more
    )


def _mask_of(ray_type: str) -> Option:
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
    )


OPTIONS: tuple[Option, ...] = (
    _of_build(
        "builder",
        "builder",
        "choice",
        "nodes",
        choices=tuple(builder.name for builder in BUILDERS),
        help="How boxes become a tree.",
    ),
    _of_build(
        "nodes",
        "node kind",
        "choice",
        "layout bytes",
        choices=NODE_FORMATS,
        help="Inner box nodes: 64 bytes of halves, 128 of floats, or what loses little.",
    ),
    _of_build(
        "leaf",
        "leaf",
        "choice",
        "layout bytes",
        choices=LEAF_SIZES,
        help="Most triangles that share a 64-byte block.",
    ),
    _of_build(
        "reinsertion",
        "reinsertion",
        "number",
        "nodes",
        high=60,
        step=1,
        help="Rounds that move subtrees to better places after the builder.",
    ),
    _of_build(
        "collapse",
        "collapse",
        "choice",
        "nodes",
        choices=COLLAPSES,
        help="How the binary tree becomes four wide.",
    ),
    _of_build(
        "pairing",
        "pairing",
        "choice",
        "build and update",
        choices=PAIRINGS,
        help="Triangles into blocks: near ones, as the GPU does, or the best of all, on the CPU.",
    ),
    _of_settings(
        "group",
        "group",
        "build",
        "nodes",
        choices=GROUPS,
        help="One BLAS for all that stands still, one an object, or one for everything.",
    ),
    _of_frame(
        "update",
        "update",
        "choice",
        "frame",
        "build and update",
        choices=UPDATES,
        help="What deforms: fit its boxes anew each frame, build its tree anew, or decide by SAH.",
    ),
    _of_frame(
        "gbuffer",
        "G-buffer",
        "choice",
        "frame",
        "none",
        choices=GBUFFERS,
        help="What each pixel sees first, by the rasteriser or by rays.",
    ),
    _of_frame(
        "roughness_cutoff",
        "roughness cutoff",
        "number",
        "view",
        "rays",
        help="Surfaces up to this roughness send a reflection ray.",
    ),
    _of_frame(
        "traversal",
        "traversal",
        "choice",
        "frame",
        "time a node",
        choices=TRAVERSALS,
        help="Our own arithmetic, or every node through the instruction as defined (slow).",
    ),
    _of_frame(
        "while_while",
        "while-while",
        "flag",
        "frame",
        "time a node",
        help="Two inner loops, for nodes and for leaves, instead of one.",
    ),
    _of_frame(
        "sort_shadow",
        "sort shadow rays' nodes",
        "flag",
        "frame",
        "nodes",
        help="Nearest child first for any-hit rays, too.",
    ),
    _of_frame(
        "stack",
        "stack",
        "choice",
        "frame",
        "time a node",
        choices=STACK_SIZES,
        help="Entries of a ray's stack to begin with; a frame that needs more is drawn again.",
    ),
    *(_mask_of(ray.name) for ray in RAY_TYPES),
    _of_frame(
        "count",
        "counters",
        "flag",
        "frame",
        "none",
        help="Counts what rays visit, in a frame of its own beside the timed one.",
    ),
    _of_frame(
        "exposure",
        "exposure",
        "number",
        "view",
        "none",
        low=0.05,
        high=20.0,
        step=0.05,
        help="Factor of the light before it is tone-mapped.",
    ),
    _of_frame(
        "seed",
        "seed",
        "number",
        "view",
        "none",
        high=999,
        step=1,
        help="Of every random number in the frame.",
    ),
)


def find_option(name: str) -> Option:
    """The option of that name. UserError where there is none."""
    for option in OPTIONS:
        if option.name == name:
            return option
    raise UserError(f"no option is named '{name}'; known: {', '.join(o.name for o in OPTIONS)}")


def changed(old: ViewSettings, new: ViewSettings) -> tuple[Option, ...]:
    """The options whose values differ."""
    return tuple(option for option in OPTIONS if option.get(old) != option.get(new))


def scopes_of(options: Iterable[Option]) -> frozenset[str]:
    return frozenset(option.scope for option in options)
