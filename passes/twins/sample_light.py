"""Twin of sample_light.wgsl: which points of which lights shadow rays go to."""

from dataclasses import replace
from typing import Any

import numpy as np

from passes.shadow_slots import ShadowSlots
from passes.twins.choose_light import choose_light
from passes.twins.light import LightSample, light_from, pack_light
from passes.twins.rect_light import light_count
from passes.twins.sample_number import sample_number
from passes.twins.sampling import light_choice_dimension, light_dimension
from passes.twins.wgsl_functions import F32, U32, vector


def sample_light(frame: Any, tables: U32, pixel: U32, dimension: int, light: U32) -> U32:
    """[n] random points of the lights [n], as shadow rays carry them."""
    u, v = (sample_number(frame, tables, pixel, dimension + i) for i in range(2))
    return pack_light(frame, vector(u, v), light)


def light_sample(
    frame: Any,
    tables: U32,
    slots: ShadowSlots,
    pixel: U32,
    kind: int,
    number: int,
    position: F32,
    geometric_normal: F32,
    normal: F32,
    view: F32,
    base_color: F32,
    metalness: F32,
    roughness: F32,
    *,
    uniform: bool = False,
) -> LightSample:
    """What the pixels' `number`th shadow rays from surfaces of that kind may bring."""
    r = np.zeros(len(pixel), np.float32)
    if light_count(frame) > slots.rays:
        dimension = light_choice_dimension(kind, number)
        r = sample_number(frame, tables, pixel, dimension)
    choice = choose_light(
        frame, slots, number, r, position, geometric_normal, normal, uniform=uniform
    )
    light_uv = sample_light(frame, tables, pixel, light_dimension(kind, number), choice.light)
    surface = (position, geometric_normal, normal, view, base_color, metalness, roughness)
    found = light_from(frame, light_uv, *surface)
    return replace(found, radiance=found.radiance * choice.weight[:, None])
