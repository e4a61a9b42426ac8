"""Twin of light.wgsl: what points of the area lights may bring."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.twins.brdf import NARROW_ROUGHNESS, evaluate_brdf
from passes.twins.rect_light import light_count, lights_at
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
    """[n, 3] each: radiance if the light is seen, and the way to it, not normalised; [n] the point
    as shadow rays carry it."""

    radiance: F32
    to_light: F32
    light_uv: U32


def pack_light(frame: Any, uv: F32, light: U32) -> U32:
    """[n] from [n, 2] and [n]: two 16-bit unorms, of several lights two of 14 and the number."""
    if light_count(frame) <= 1:
        return pack_2x16_unorm(uv)
    u, v = np.rint(np.float32(16383.0) * uv).astype(np.uint32).T
    return np.asarray(u | (v << np.uint32(14)) | (light << np.uint32(28)))


def sampled_light(frame: Any, light_uv: U32) -> U32:
    """[n]"""
    return light_uv >> np.uint32(28) if light_count(frame) > 1 else np.zeros_like(light_uv)


def sampled_place(frame: Any, light_uv: U32) -> F32:
    """[n, 2] on their lights, 0 to 1."""
    if light_count(frame) <= 1:
        return unpack_2x16_unorm(light_uv)
    low = np.uint32(0x3FFF)
    code = vector(light_uv & low, (light_uv >> np.uint32(14)) & low)
    return np.asarray(code / np.float32(16383.0))


def light_point(frame: Any, light_uv: U32) -> F32:
    """[n, 3] world space."""
    s = np.float32(2.0) * sampled_place(frame, light_uv) - 1.0
    light = lights_at(frame, sampled_light(frame, light_uv))
    return np.asarray(light.center + s[..., :1] * light.half_u + s[..., 1:] * light.half_v)


def sampled_roughness(roughness: F32, sends: Flags) -> F32:
    """[n]"""
    narrow = sends & (roughness < NARROW_ROUGHNESS)
    return np.where(narrow, np.float32(0.0), roughness)


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
    light = lights_at(frame, sampled_light(frame, light_uv))
    distance2 = dot(to_light, to_light)
    direction = to_light * inverse_sqrt(np.maximum(distance2, np.float32(1.0e-20)))[..., None]
    cosine_light = -dot(direction, light.normal)
    dark = (cosine_light <= 0.0) | (dot(geometric_normal, direction) <= 0.0) | (distance2 == 0.0)
    reflected = evaluate_brdf(base_color, metalness, roughness, normal, view, direction)
    arriving = cosine_light * light.area / distance2
    radiance = reflected * light.radiance * arriving[..., None]
    return LightSample(np.where(dark[..., None], np.float32(0.0), radiance), to_light, light_uv)


def is_black(c: F32) -> Flags:
    return np.asarray(np.maximum(c[..., 0], np.maximum(c[..., 1], c[..., 2])) <= 0.0)
