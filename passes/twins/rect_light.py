"""Twin of rect_light.wgsl: the frame's area lights."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.frame_uniforms import LIGHT_PARTS
from passes.twins.wgsl_functions import F32


@dataclass(frozen=True, slots=True)
class RectLights:
    """One light, or one a lane: vectors [3] or [n, 3], area [] or [n]."""

    center: F32
    half_u: F32
    half_v: F32
    radiance: F32
    normal: F32
    area: F32


def light_count(frame: Any) -> int:
    return max(int(frame["light_count"]), 1)


def lights_at(frame: Any, light: Any) -> RectLights:
    """By number: one, or one a lane."""
    first = np.stack([frame[f"light_{part}"] for part in LIGHT_PARTS])
    more = frame["more_lights"].reshape(-1, len(LIGHT_PARTS), 4)
    parts = np.concatenate([first[None], more])[light]
    center, half_u, half_v, radiance, normal = np.moveaxis(parts, -2, 0)
    axes = (half_u[..., :3], half_v[..., :3])
    return RectLights(center[..., :3], *axes, radiance[..., :3], normal[..., :3], normal[..., 3])
