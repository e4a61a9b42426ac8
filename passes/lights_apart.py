"""Lights that are kept apart until the composite: what a pixel is shown of reflections, and the
area light on it, both at the picture's size, shadows included.

Passes that work on light itself, as reflections sent at a part of the picture's size do
(`FrameOptions.lights_apart`), stand between these and the composite. A light is two words a pixel,
four halves: radiance, and w. Of `reflection_light` w is the distance in metres of what is
reflected (65504: nothing is, or the environment stands for a ray); of `direct_light` the part of
the light that is seen.
"""

LIGHT_BYTES = 8  # a pixel
# What counts pixels that no ray stands for, where reflections send no rays and have no queue.
NO_REFLECTION_QUEUE = "no_reflection_queue"
# Binding of the composite -> the light that it reads there in place of the rays' results.
LIGHTS_APART = {"direct": "direct_light", "reflected": "reflection_light"}
