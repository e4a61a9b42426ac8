"""Twin of sampled_visibility.wgsl: what points see of the lights they sampled, by shadow maps."""

from typing import Any

import numpy as np

from passes.twins.light import sampled_light, sampled_place
from passes.twins.shadow_map import map_visibility
from passes.twins.surface import SurfacePoint
from passes.twins.wgsl_functions import F32, U32


def sampled_visibility(frame: Any, shadow_map: F32, sampled: U32, point: SurfacePoint) -> U32:
    """[n] as 16-bit unorms. `sampled` [n]: light and place on it, packed."""
    seen = map_visibility(
        frame,
        shadow_map,
        sampled_light(frame, sampled),
        point.position,
        point.geometric_normal,
        sampled_place(frame, sampled),
    )
    return np.asarray((seen * np.float32(65535.0) + np.float32(0.5)).astype(np.uint32))
