"""Twin of composite.wgsl: the frame's light put together, the running mean, the picture."""

from typing import Any

import numpy as np

from passes.shadow_slots import ONE_RAY, ShadowSlots
from passes.twins.brdf import diffuse_albedo
from passes.twins.camera import camera_direction
from passes.twins.direct import direct_radiance
from passes.twins.environment import ambient_radiance, environment
from passes.twins.gbuffer import NOTHING, tile_pixels, unpack_surface
from passes.twins.material import MATERIAL_VEC4S
from passes.twins.reflected import reflected_radiance
from passes.twins.rough_radiance import rough_radiance
from passes.twins.surface_albedo import surface_albedo
from passes.twins.tone_map import linear_to_srgb, tone_map, unpack_radiance
from passes.twins.wgsl_functions import (
    F32,
    U32,
    normalize,
    pack_4x8_unorm,
    to_float,
    vector,
)


@np.errstate(all="ignore")
def composite(
    frame: Any,
    tables: U32,
    visibility: U32,
    surface: U32,
    direct: U32,
    reflected: U32,
    shadow_results: U32,
    occlusion_results: U32,
    accumulated: F32,
    picture: U32,
    depth: F32,
    probe: F32,
    lobe_table: U32,
    *,
    occluded: bool = False,
    lights_apart: bool = False,
    filtered: bool = False,
    slots: ShadowSlots = ONE_RAY,
    fallback: str = "environment",
) -> None:
    """Adds to `accumulated` [pixels, 4], writes `picture` [pixels]."""
    pixels = tile_pixels(frame)
    direction = camera_direction(frame, pixels.x, pixels.y)
    radiance = environment(frame, direction)
    covered = np.flatnonzero(visibility[pixels.y, pixels.x, 0] != NOTHING)
    here = pixels[covered]
    s = unpack_surface(surface[here.y, here.x])
    view = normalize(-direction[covered])
    normal = s.shading_normal
    material = int(frame["material_base"]) + s.material.astype(np.int64) * MATERIAL_VEC4S
    emissive = to_float(tables)[material + 1, :3]
    specular = surface_albedo(lobe_table, s, view)
    diffuse = diffuse_albedo(s.base_color, s.metalness, specular)
    ambient = ambient_radiance(frame, normal)
    if occluded and filtered:
        ambient = np.zeros_like(ambient)
    elif occluded:
        ambient = ambient * occlusion_results[here.index].astype(np.float32)[:, None]
    lit = emissive + diffuse * ambient
    if lights_apart:
        lights = unpack_radiance(direct[here.index]) + unpack_radiance(reflected[here.index])
        radiance[covered] = lit + lights
    else:
        lit = lit + direct_radiance(slots, direct, shadow_results, here.index)
        traced = reflected_radiance(slots, reflected, shadow_results, here.index)
        rough = rough_radiance(frame, s, view, here, depth, probe, fallback)
        untraced = specular * rough
        brought = s.roughness <= frame["roughness_cutoff"]
        radiance[covered] = lit + np.where(brought[:, None], traced, untraced)

    total = vector(radiance[:, 0], radiance[:, 1], radiance[:, 2], 1.0)
    if frame["sample_count"] > 1 and not filtered:
        total = total + accumulated[pixels.index]
    accumulated[pixels.index] = total
    display = linear_to_srgb(tone_map(total[:, :3] / total[:, 3:] * frame["exposure"]))
    picture[pixels.index] = pack_4x8_unorm(vector(display[:, 0], display[:, 1], display[:, 2], 1.0))
