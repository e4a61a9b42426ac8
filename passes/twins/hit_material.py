"""Twin of hit_material.wgsl: a hit's material by the frame's grouping of hit records."""

from typing import Any

import numpy as np

from passes.hit_records import RECORD_TEXELS, RECORDS_A_ROW
from passes.twins.material import SurfaceMaterial, material_at, material_of
from passes.twins.surface import SurfacePoint, face_viewer, surface_point
from passes.twins.wgsl_functions import F32, U32, dot, unpack_2x16_float


def hit_material(
    frame: Any,
    tables: U32,
    texels: U32,
    hit_records: U32,
    object: U32,
    point: SurfacePoint,
    cone_width: F32,
    cosine: F32,
    *,
    fine_table: bool,
) -> SurfaceMaterial:
    """Of hits on `object` [n]."""
    if not fine_table:
        return material_at(frame, tables, texels, point, cone_width, cosine)
    row, place = np.divmod(object.astype(np.int64), RECORDS_A_ROW)
    columns = RECORD_TEXELS * place[:, None] + np.arange(3)
    found = hit_records[row[:, None], columns]
    return material_of(frame, tables, texels, found, point, cone_width, cosine)


def hit_surface(
    frame: Any,
    tables: U32,
    geometry: U32,
    texels: U32,
    hit_records: U32,
    record: Any,
    hit: Any,
    *,
    fine_table: bool,
) -> tuple[SurfacePoint, SurfaceMaterial, F32]:
    """The surfaces that the rays `record` [n] found by `hit` [n], turned towards them, and the
    width [n] of each ray's cone there. In WGSL bounce.wgsl and shade.wgsl write it out."""
    view = -record["direction"]
    point = face_viewer(
        surface_point(frame, tables, geometry, hit["object"], hit["primitive"], hit["u"], hit["v"]),
        view,
    )
    cone = unpack_2x16_float(record["cone"])
    width = cone[:, 0] + cone[:, 1] * hit["t"]
    material = hit_material(
        frame,
        tables,
        texels,
        hit_records,
        hit["object"],
        point,
        width,
        np.abs(dot(point.geometric_normal, view)),
        fine_table=fine_table,
    )
    return point, material, width
