"""Twin of hit_material.wgsl: a hit's material by the frame's grouping of hit records."""

from typing import Any

import numpy as np

from passes.hit_records import RECORD_TEXELS, RECORDS_A_ROW
from passes.twins.material import SurfaceMaterial, material_at, material_of
from passes.twins.surface import SurfacePoint
from passes.twins.wgsl_functions import F32, U32


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
