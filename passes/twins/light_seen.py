"""Twin of light_seen.wgsl: the light itself, as a mirror sees it."""

from typing import Any

import numpy as np

from passes.twins.wgsl_functions import F32, dot


def light_seen(frame: Any, origin: F32, direction: F32, t_max: F32) -> F32:
    """[n, 3]"""
    center, half_u, half_v, normal = (
        frame[f"light_{name}"][:3] for name in ("center", "half_u", "half_v", "normal")
    )
    facing = dot(direction, normal)
    t = dot(center - origin, normal) / facing
    p = origin + t[:, None] * direction - center
    u = dot(p, half_u) / dot(half_u, half_u)
    v = dot(p, half_v) / dot(half_v, half_v)
    inside = (t > 0.0) & (t < t_max) & (np.abs(u) <= 1.0) & (np.abs(v) <= 1.0)
    seen = (inside & (facing < 0.0))[:, None]
    return np.where(seen, frame["light_radiance"][:3], np.float32(0.0))
