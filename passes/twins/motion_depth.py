"""Twin of motion_depth.wgsl: how far what a pixel shows has moved, and how deep it lay."""

from typing import Any

from passes.twins.gbuffer import tile_pixels
from passes.twins.moved import moved_by
from passes.twins.wgsl_functions import F32, U32


def motion_depth(
    frame: Any,
    previous_view: Any,
    tables: U32,
    geometry: U32,
    previous_objects: U32,
    previous_vertices: U32,
    visibility: U32,
    motion: F32,
    depth_before: F32,
) -> None:
    """Writes `motion` [pixels, 2] and `depth_before` [pixels]."""
    seen = frame, previous_view, tables, geometry, previous_objects, previous_vertices, visibility
    pixels = tile_pixels(frame)
    motion[pixels.index], depth_before[pixels.index] = moved_by(*seen, pixels)
