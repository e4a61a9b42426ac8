"""Twin of resolve.wgsl: ids into the rest of the G-buffer."""

from typing import Any

import numpy as np

from passes.twins.camera import camera_direction
from passes.twins.gbuffer import (
    NOTHING,
    GBufferSurface,
    pack_surface,
    tile_pixels,
)
from passes.twins.material import material_at
from passes.twins.pixel_hit import pixel_hit, pixel_primitive
from passes.twins.surface import face_viewer, surface_point
from passes.twins.wgsl_functions import F32, U32, dot, length, normalize, to_words


@np.errstate(all="ignore")
def resolve(
    frame: Any,
    tables: U32,
    geometry: U32,
    texels: U32,
    ids: U32,
    visibility_out: U32,
    surface_out: U32,
    depth_out: F32,
) -> None:
    """Writes `visibility_out` and `surface_out` [height, width, 4], `depth_out` [height, width]."""
    pixels = tile_pixels(frame)
    visibility_out[:] = (NOTHING, NOTHING, 0, 0)
    surface_out[:] = 0
    depth_out[:] = 0
    pixels = pixels[ids[pixels.y, pixels.x, 0] != NOTHING]
    object, primitive = ids[pixels.y, pixels.x].T
    direction = camera_direction(frame, pixels.x, pixels.y)
    view = normalize(-direction)
    u, v = pixel_hit(frame, tables, geometry, object, primitive, direction)
    primitive = pixel_primitive(primitive)
    point = face_viewer(surface_point(frame, tables, geometry, object, primitive, u, v), view)
    away_from_camera = point.position - frame["camera_origin"][:3]
    cosine = np.abs(dot(point.geometric_normal, view))
    cone_width = frame["pixel_spread"] * length(away_from_camera)
    material = material_at(frame, tables, texels, point, cone_width, cosine)
    visibility_out[pixels.y, pixels.x] = np.stack([object, primitive, to_words(u), to_words(v)], -1)
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
