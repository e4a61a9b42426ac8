"""Twin of sent_direction.wgsl: the directions of the reflection rays that pixels send."""

from dataclasses import dataclass
from typing import Any

from passes.twins.camera import camera_direction
from passes.twins.gbuffer import GBufferSurface, Pixels, unpack_surface
from passes.twins.reflect_ray import reflect_ray
from passes.twins.sample_number import sample_number
from passes.twins.sampling import REFLECTION_DIMENSION
from passes.twins.wgsl_functions import F32, U32, Flags, normalize


@dataclass(frozen=True, slots=True)
class SentDirection:
    """By pixel [n]: what sends, the view away from it and the ray's `direction` [n, 3] (see
    `reflect_ray`)."""

    s: GBufferSurface
    view: F32
    direction: F32
    raised: Flags
    lost: Flags


def sent_direction(frame: Any, tables: U32, surface: U32, pixels: Pixels) -> SentDirection:
    """Of `pixels`, which show surfaces."""
    s = unpack_surface(surface[pixels.y, pixels.x])
    view = normalize(-camera_direction(frame, pixels.x, pixels.y))
    r1, r2 = (
        sample_number(frame, tables, pixels.index, REFLECTION_DIMENSION + i) for i in range(2)
    )
    ray = reflect_ray(view, s.shading_normal, s.geometric_normal, s.roughness, r1, r2)
    return SentDirection(s, view, *ray)
