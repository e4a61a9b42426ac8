"""Twin of light_seen.wgsl: the lights themselves, as mirrors and narrow lobes see them."""

from typing import Any

import numpy as np

from passes.twins.rect_light import RectLights, light_count, lights_at
from passes.twins.wgsl_functions import F32, dot


def light_on_ray(light: RectLights, origin: F32, direction: F32, t_max: F32) -> F32:
    """[n, 3]"""
    facing = dot(direction, light.normal)
    t = dot(light.center - origin, light.normal) / facing
    p = origin + t[:, None] * direction - light.center
    u = dot(p, light.half_u) / dot(light.half_u, light.half_u)
    v = dot(p, light.half_v) / dot(light.half_v, light.half_v)
    inside = (t > 0.0) & (t < t_max) & (np.abs(u) <= 1.0) & (np.abs(v) <= 1.0)
    return np.where((inside & (facing < 0.0))[:, None], light.radiance, np.float32(0.0))


def light_seen(frame: Any, origin: F32, direction: F32, t_max: F32) -> F32:
    """[n, 3]"""
    total = np.zeros_like(origin)
    for i in range(light_count(frame)):
        total = total + light_on_ray(lights_at(frame, i), origin, direction, t_max)
    return np.asarray(total)
