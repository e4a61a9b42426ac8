"""Records of the passes that filter light, shared by host and shaders.

What a frame remembers lies in two halves of each buffer, [2][pixels], which frames write in turn:
one holds what the frame before left, the other takes what this one leaves.
"""

from engine.gpu.structs import Field, Struct

FILTER_VIEW = Struct(
    "FilterView",
    # Of the picture before, as FrameUniforms has them of this one.
    Field("origin", "vec4f"),
    Field("right", "vec4f"),
    Field("up", "vec4f"),
    Field("forward", "vec4f"),
    Field("before", "u32"),  # first pixel of the half that the frame before left
    Field("after", "u32"),  # and of the one that this frame leaves
    Field("past", "u32"),  # one of PASTS
    Field("limit", "f32"),  # most frames remembered
    Field("clamped", "u32"),  # bits CLAMPED_*: which light's past has to fit the present
    Field("pad", "u32"),
    Field("pad_2", "vec2u"),
)
# What a pixel's past is: nothing; the pixel itself, of a further sample of a picture; or where its
# surface was on the picture before.
PASTS = ("nothing", "same", "moved")
# Light that the camera's place decides, too: reflections, and the lights' own images in glossy
# surfaces that shine more than they scatter; and all other light.
CLAMPED_DIFFUSE, CLAMPED_GLOSSY = 1, 2
MOST_SAMPLES = 2048  # in a running mean, whose length is a half

GUIDE_BYTES = 16  # a pixel: depth, shading normal, object, roughness
HISTORY_BYTES = 16  # a pixel: three floats of light; halves: frames, standard deviation of a sample
FILTERED_BYTES = 8  # a pixel: four halves


def wgsl() -> str:
    names = [f"const PAST_{name.upper()}: u32 = {i}u;" for i, name in enumerate(PASTS)]
    clamps = [
        f"const CLAMPED_GLOSSY: u32 = {CLAMPED_GLOSSY}u;",
        f"const CLAMPED_DIFFUSE: u32 = {CLAMPED_DIFFUSE}u;",
    ]
    return FILTER_VIEW.wgsl() + "\n".join([*names, *clamps]) + "\n"
