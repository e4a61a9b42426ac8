"""Where reflections were found that are looked for on the screen; counted in counted frames."""

from engine.gpu.structs import Field, Struct

SCREEN_COUNTS = Struct(
    "ScreenCounts",
    Field("screen", "u32"),  # pixels whose reflected direction goes into a visible surface
    Field("probe", "u32"),  # others, by where the probe shows a surface
    Field("environment", "u32"),  # or nothing
    Field("replaced", "u32"),  # directions below the geometric horizon that were mirrored up
    Field("cut", "u32"),  # directions that had not come to their end after all their steps
)
COUNT_NAMES = tuple(field.name for field in SCREEN_COUNTS.fields)


def wgsl() -> str:
    return SCREEN_COUNTS.wgsl().replace(": u32", ": atomic<u32>")
