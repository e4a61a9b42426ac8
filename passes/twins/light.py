"""Twin of light.wgsl: one sampled point of the area light."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.twins.brdf import evaluate_brdf
from passes.twins.sampling import random
from passes.twins.wgsl_functions import (
    F32,
    U32,
    Flags,
    dot,
    inverse_sqrt,
    pack_2x16_unorm,
    unpack_2x16_unorm,
    vector,
)

SHADOW_T_MAX = np.float32(0.9995)


@dataclass(frozen=True, slots=True)
class LightSample:
    """[n, 3] each: radiance if the light is seen, and the way to it, not normalised."""

    radiance: F32
    to_light: F32


def sample_light(frame: Any, pixel: U32, dimension: int) -> U32:
    """[n] points of the light, two 16-bit unorms each."""
    u, v = (random(pixel, frame["frame_index"], frame["seed"], dimension + i) for i in range(2))
    return pack_2x16_unorm(vector(u, v))


def light_point(frame: Any, light_uv: U32) -> F32:
    """[n, 3] world space."""
    s = np.float32(2.0) * unpack_2x16_unorm(light_uv) - 1.0
    u, v = frame["light_half_u"][:3], frame["light_half_v"][:3]
    return np.asarray(frame["light_center"][:3] + s[..., :1] * u + s[..., 1:] * v)


def light_from(
    frame: Any,
    light_uv: U32,
    position: F32,
    geometric_normal: F32,
    normal: F32,
    view: F32,
    base_color: F32,
    metalness: F32,
    roughness: F32,
) -> LightSample:
    to_light = light_point(frame, light_uv) - position
    distance2 = dot(to_light, to_light)
    direction = to_light * inverse_sqrt(np.maximum(distance2, np.float32(1.0e-20)))[..., None]
    cosine_light = -dot(direction, frame["light_normal"][:3])
    dark = (cosine_light <= 0.0) | (dot(geometric_normal, direction) <= 0.0) | (distance2 == 0.0)
    reflected = evaluate_brdf(base_color, metalness, roughness, normal, view, direction)
    arriving = cosine_light * frame["light_normal"][3] / distance2
    radiance = reflected * frame["light_radiance"][:3] * arriving[..., None]
    return LightSample(np.where(dark[..., None], np.float32(0.0), radiance), to_light)


def is_black(c: F32) -> Flags:
    return np.asarray(np.maximum(c[..., 0], np.maximum(c[..., 1], c[..., 2])) <= 0.0)
