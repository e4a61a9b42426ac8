"""Twin of display_occlusion.wgsl: the ambient light that occlusion rays let through."""

from typing import Any

import numpy as np

from passes.twins.brdf import diffuse_albedo
from passes.twins.camera import camera_direction
from passes.twins.environment import ambient_radiance
from passes.twins.gbuffer import NOTHING, tile_pixels, unpack_surface
from passes.twins.surface_albedo import surface_albedo
from passes.twins.tone_map import linear_to_srgb, tone_map
from passes.twins.wgsl_functions import U32, normalize, store_unorm


def display_occlusion(
    frame: Any,
    visibility: U32,
    surface: U32,
    occlusion_results: U32,
    shown: Any,
    lobe_table: U32,
) -> None:
    pixels = tile_pixels(frame)
    s = unpack_surface(surface[pixels.y, pixels.x])
    view = normalize(-camera_direction(frame, pixels.x, pixels.y))
    specular = surface_albedo(lobe_table, s, view)
    diffuse = diffuse_albedo(s.base_color, s.metalness, specular)
    free = occlusion_results[pixels.index].astype(np.float32)
    radiance = diffuse * ambient_radiance(frame, s.shading_normal) * free[:, None]
    covered = visibility[pixels.y, pixels.x, 0] != NOTHING
    radiance = np.where(covered[:, None], radiance, np.float32(0.0))
    store_unorm(shown, pixels, linear_to_srgb(tone_map(radiance * frame["exposure"])))
