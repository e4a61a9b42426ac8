"""Twin of probe_light.wgsl: what a probe sees, lit."""

from typing import Any

import numpy as np

from passes.twins.brdf import diffuse_albedo, reflectance_at_normal
from passes.twins.environment import ambient_radiance, environment
from passes.twins.gbuffer import NOTHING
from passes.twins.light import is_black, light_from, pack_light
from passes.twins.material import material_at
from passes.twins.pixel_hit import pixel_hit, pixel_primitive
from passes.twins.probe_layout import octahedral_direction
from passes.twins.rect_light import light_count
from passes.twins.shadow_map import map_visibility
from passes.twins.specular_albedo import specular_albedo
from passes.twins.surface import face_viewer, surface_point
from passes.twins.wgsl_functions import (
    F32,
    U32,
    Index,
    dot,
    length,
    reflect,
    vector,
)


def cube_place(d: F32, size: int) -> tuple[Index, Index, Index]:
    """Face of passes.raster_views.CUBE, row and column of directions [n, 3]."""
    x, y, z = d.T
    ax, ay, az = np.abs(d).T
    is_y = (ay > ax) & (ay >= az)
    is_z = ~is_y & (az > ax)
    face = np.where(x >= 0.0, 0, 1)
    across = np.where(x >= 0.0, -z, z) / np.where(is_y | is_z, np.float32(1.0), ax)
    up = y / np.where(is_y | is_z, np.float32(1.0), ax)
    face = np.where(is_y, np.where(y >= 0.0, 2, 3), face)
    face = np.where(is_z, np.where(z >= 0.0, 4, 5), face)
    depth = np.where(is_y, ay, np.where(is_z, az, np.float32(1.0)))
    across = np.where(is_y, x / depth, np.where(is_z, np.where(z >= 0.0, x, -x) / depth, across))
    up = np.where(is_y, np.where(y >= 0.0, -z, z) / depth, np.where(is_z, y / depth, up))
    half = np.float32(0.5)
    place = vector(half + half * across, half - half * up) * np.float32(size)
    column, row = np.clip(place, 0.0, np.float32(size - 1)).astype(np.int64).T
    return face, row, column


@np.errstate(all="ignore")
def probe_light(
    frame: Any,
    tables: U32,
    geometry: U32,
    texels: U32,
    probe_ids: U32,
    shadow_map: F32,
    probe_light: F32,
    lobe_table: U32,
) -> None:
    """Writes `probe_light` [size * size, 4]; `probe_ids` [6, size / 2, size / 2, 2]."""
    size = 2 * probe_ids.shape[1]
    y, x = (part.ravel() for part in np.indices((size, size)))
    place = (vector(x, y) + np.float32(0.5)) / np.float32(size)
    direction = octahedral_direction(place)
    face, row, column = cube_place(direction, probe_ids.shape[1])
    seen = probe_ids[face, row, column]
    probe_light[:] = 0
    covered = np.flatnonzero(seen[:, 0] != NOTHING)
    seen, direction = seen[covered], direction[covered]
    view = -direction
    u, v = pixel_hit(frame, tables, geometry, seen[:, 0], seen[:, 1], direction)
    primitive = pixel_primitive(seen[:, 1])
    point = face_viewer(surface_point(frame, tables, geometry, seen[:, 0], primitive, u, v), view)
    width = frame["pixel_spread"] * length(point.position - frame["camera_origin"][:3])
    cosine = np.abs(dot(point.geometric_normal, view))
    material = material_at(frame, tables, texels, point, width, cosine)
    normal = point.shading_normal
    n_v = np.maximum(dot(normal, view), np.float32(1.0e-4))
    f0 = reflectance_at_normal(material.base_color, material.metalness)
    specular = specular_albedo(lobe_table, f0, material.roughness, n_v)
    diffuse = diffuse_albedo(material.base_color, material.metalness, specular)
    radiance = material.emissive + diffuse * ambient_radiance(frame, normal)
    radiance = radiance + specular * environment(frame, reflect(direction, normal))
    centre = np.full((len(seen), 2), np.float32(0.5))
    for i in range(light_count(frame)):
        number = np.full(len(seen), i, np.uint32)
        light = light_from(
            frame,
            pack_light(frame, centre, number),
            point.position,
            point.geometric_normal,
            normal,
            view,
            material.base_color,
            material.metalness,
            material.roughness,
        )
        lit = np.flatnonzero(~is_black(light.radiance))
        visible = map_visibility(
            frame,
            shadow_map,
            number[lit],
            point.position[lit],
            point.geometric_normal[lit],
            centre[lit],
        )
        radiance[lit] += light.radiance[lit] * visible[:, None]
    probe_light[covered, :3] = np.minimum(radiance, np.float32(6.0e4))
    probe_light[covered, 3] = 1
