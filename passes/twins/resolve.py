"""Twin of resolve.wgsl: visibility into the G-buffer's surface and depth."""

from typing import Any

import numpy as np

from passes.twins.gbuffer import (
    NOTHING,
    GBufferSurface,
    camera_direction,
    pack_surface,
    tile_pixels,
)
from passes.twins.material import material_at
from passes.twins.surface import face_viewer, surface_point
from passes.twins.wgsl_functions import F32, U32, dot, length, normalize, to_float


@np.errstate(all="ignore")
def resolve(
    frame: Any,
    tables: U32,
    geometry: U32,
    texels: U32,
    visibility: U32,
    surface_out: U32,
    depth_out: F32,
) -> None:
    """Writes `surface_out` [height, width, 4] and `depth_out` [height, width]."""
    pixels = tile_pixels(frame)
    surface_out[:] = 0
    depth_out[:] = 0
    pixels = pixels[visibility[pixels.y, pixels.x, 0] != NOTHING]
    seen = visibility[pixels.y, pixels.x]
    view = normalize(-camera_direction(frame, pixels.x, pixels.y))
    u, v = to_float(seen[:, 2]), to_float(seen[:, 3])
    point = face_viewer(surface_point(frame, tables, geometry, seen[:, 0], seen[:, 1], u, v), view)
    away_from_camera = point.position - frame["camera_origin"][:3]
    cosine = np.abs(dot(point.geometric_normal, view))
    cone_width = frame["pixel_spread"] * length(away_from_camera)
    material = material_at(frame, tables, texels, point, cone_width, cosine)
    surface_out[pixels.y, pixels.x] = pack_surface(
        GBufferSurface(
            point.shading_normal,
            point.geometric_normal,
            material.base_color,
            point.material,
            material.roughness,
            material.metalness,
        )
    )
    depth_out[pixels.y, pixels.x] = dot(away_from_camera, frame["camera_forward"][:3])
