"""Reflections without rays: `screen/reflection` follows each reflected direction over the picture,
by the pyramid that `screen/depth_pyramid` made of it (`passes.depth_pyramid`), and takes the light
of the visible surface that it goes into; what is not to be seen there comes from a probe
(`passes.probe_passes`).

Directions are those that reflection rays would have. What is found has this frame's light: its own
direct light, as the camera sees it, with its shadow, its emission and ambient light. What lies
behind something, beyond the picture's borders or towards the camera is not found: the probe shows
it from another point, and blurred. Directions that leave a mirror or a narrow lobe for the
light see it through whatever the screen does not show.
"""

from engine.frame.render_pass import Pass
from passes import depth_pyramid
from passes.probe_passes import probe_constants
from passes.stage_passes import StagePasses


def screen_passes(make: StagePasses) -> list[Pass]:
    """After the frame's direct light and shadows, and its probe."""
    options = make.options
    block = options.reflection_block
    pyramid = make.over_tiles(
        "screen/depth_pyramid",
        "depth_pyramid",
        block=(1 << depth_pyramid.TOP) // 8,  # a workgroup makes a cell of the top level
        pyramid_out="pyramid",
    )
    reflection = make.over_tiles(
        "screen/reflection",
        "screen_reflection",
        constants={
            "REFLECTION_BLOCK": block,
            "NARROW_OWN": options.sends_narrow,
            "SCREEN_STEPS": options.screen_steps,
            "COUNT": options.count,
            "WITHOUT_COLOR": options.finds_edges,
            **probe_constants(options),
        },
        block=block,
        trusted=True,  # a ray's way lies within the picture, whose surfaces come from the scene
    )
    return [pyramid, reflection]
