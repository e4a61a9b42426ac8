"""Every option that a user may change of a frame or a build, declared once.

The declarations are in passes/options, a file an idea; here they are joined, in the order of the
viewer's controls. Those, their effect texts and random tests loop over `OPTIONS`; a new field of
`FrameOptions` or `BuildOptions` belongs there or on `NOT_FOR_USERS`, which a test holds complete.
"""

from dataclasses import replace

from engine.gpu.errors import UserError
from passes.option import COST_TERMS, KINDS, SCOPES, Need, Option, ViewSettings
from passes.options.build import BUILD, UPDATE
from passes.options.hits import ANY_HIT, ANY_HIT_PASSES, HIT_TABLE
from passes.options.picture import FILTERS, GBUFFER, MOTION, PICTURE
from passes.options.reflections import REFLECTION_RAYS, ROUGH_FALLBACK, SCREEN_REFLECTIONS
from passes.options.shadows import OCCLUSION, SHADOW_MAP, SHADOW_RAYS
from passes.options.traversal import COUNTERS, KERNELS, MASKS, STACK, TRAVERSAL
from passes.options.wavefront import WAVEFRONT

__all__ = [
    "COST_TERMS",
    "KINDS",
    "NOT_FOR_USERS",
    "OPTIONS",
    "SCOPES",
    "SECTIONS",
    "Option",
    "ViewSettings",
    "changed",
    "find_option",
    "idle",
]

# Sizes are the window's, lights the scene's, and queues hold every ray unless a test wants them to
# overflow.
NOT_FOR_USERS = ("width", "height", "map_lights", "queue_fraction")

# Headings, in the order of what people look for first.
SECTIONS: tuple[tuple[str, tuple[Option, ...]], ...] = (
    ("Structure", (*BUILD, *UPDATE)),
    ("Reflections", (*REFLECTION_RAYS, *SCREEN_REFLECTIONS, *ROUGH_FALLBACK)),
    ("Shadows and occlusion", (*SHADOW_MAP, *SHADOW_RAYS, *OCCLUSION)),
    ("Filters", (*FILTERS, *MOTION)),
    ("Picture", (*GBUFFER, *PICTURE)),
    ("Hits", (*ANY_HIT, *ANY_HIT_PASSES, *HIT_TABLE)),
    ("Traversal", (*TRAVERSAL, *STACK)),
    ("Queues", WAVEFRONT),
    ("Ray types", (*MASKS, *KERNELS)),
    ("Counters", COUNTERS),
)

OPTIONS: tuple[Option, ...] = tuple(
    replace(option, section=title) for title, options in SECTIONS for option in options
)


def find_option(name: str) -> Option:
    """The option of that name. UserError where there is none."""
    for option in OPTIONS:
        if option.name == name:
            return option
    raise UserError(f"no option is named '{name}'; known: {', '.join(o.name for o in OPTIONS)}")


def idle(settings: ViewSettings) -> tuple[tuple[Option, Need], ...]:
    """The options that are not as by default and all the same change nothing of the frame, each
    with what it lacks."""
    default = ViewSettings()
    lacking = (
        (option, option.lacks(settings.frame))
        for option in OPTIONS
        if option.get(settings) != option.get(default)
    )
    return tuple((option, need) for option, need in lacking if need is not None)


def changed(old: ViewSettings, new: ViewSettings) -> tuple[Option, ...]:
    """The options whose values differ."""
    return tuple(option for option in OPTIONS if option.get(old) != option.get(new))
