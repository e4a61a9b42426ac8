"""Twin of sent_reflection.wgsl: the reflection rays that pixels send."""

from dataclasses import dataclass
from typing import Any

from passes.twins.gbuffer import GBufferSurface, Pixels
from passes.twins.sent_direction import sent_direction
from passes.twins.surface import SurfacePoint, surface_point
from passes.twins.wgsl_functions import F32, U32, Flags, to_float


@dataclass(frozen=True, slots=True)
class SentReflection:
    """As `SentDirection`, with the `point` that sends."""

    s: GBufferSurface
    point: SurfacePoint
    view: F32
    direction: F32
    raised: Flags
    lost: Flags


def sent_reflection(
    frame: Any, tables: U32, geometry: U32, visibility: U32, surface: U32, pixels: Pixels
) -> SentReflection:
    """Of `pixels`, which show surfaces."""
    seen = visibility[pixels.y, pixels.x]
    sent = sent_direction(frame, tables, surface, pixels)
    u, v = to_float(seen[:, 2]), to_float(seen[:, 3])
    point = surface_point(frame, tables, geometry, seen[:, 0], seen[:, 1], u, v)
    return SentReflection(sent.s, point, sent.view, sent.direction, sent.raised, sent.lost)
