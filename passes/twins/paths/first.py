"""Twin of paths/first.wgsl: the weight of the visible surface."""

from typing import Any

import numpy as np

from passes.twins.brdf import NARROW_ROUGHNESS
from passes.twins.camera import camera_direction
from passes.twins.gbuffer import unpack_surface
from passes.twins.sent_weight import sent_weight
from passes.twins.wgsl_functions import F32, U32, Flags, normalize


def path_of(
    frame: Any, surface: U32, lobe_table: U32, records: Any, *, without_color: bool
) -> tuple[F32, Flags]:
    """[n, 3] weights, and [n] whether the ray sees lights."""
    y, x = (a.astype(np.int64) for a in np.divmod(records["pixel"], np.uint32(frame["width"])))
    first = unpack_surface(surface[y, x])
    view = normalize(-camera_direction(frame, x, y))
    direction = records["direction"]
    weight = sent_weight(lobe_table, first, view, direction, without_color=without_color)
    return weight, np.asarray(first.roughness < NARROW_ROUGHNESS)
