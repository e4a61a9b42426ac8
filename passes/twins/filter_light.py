"""Twin of filter_light.wgsl: light as filters see it."""

from typing import Any

import numpy as np

from passes.twins.brdf import diffuse_albedo
from passes.twins.gbuffer import NOTHING, GBufferSurface
from passes.twins.surface_albedo import surface_albedo
from passes.twins.wgsl_functions import F32, U32, Flags, dot, unpack_2x16_float

LEAST_FACTOR = np.float32(0.01)
LUMINANCE = np.array([0.2126, 0.7152, 0.0722], np.float32)


def light_factor(lobe_table: U32, s: GBufferSurface, view: F32, reflection: bool) -> F32:
    """[n, 3]"""
    albedo = specular = surface_albedo(lobe_table, s, view)
    if not reflection:
        albedo = specular + diffuse_albedo(s.base_color, s.metalness, specular)
    return np.maximum(albedo, LEAST_FACTOR)


def has_light(frame: Any, object: U32, roughness: F32, reflection: bool) -> Flags:
    """[n]"""
    covered = object != NOTHING
    return np.asarray(covered & (roughness <= frame["roughness_cutoff"]) if reflection else covered)


def luminance(c: F32) -> F32:
    return dot(c, LUMINANCE)


def unpack_w(words: U32) -> F32:
    """[n, 2] -> [n]"""
    return np.abs(unpack_2x16_float(words[..., 1])[..., 1])
