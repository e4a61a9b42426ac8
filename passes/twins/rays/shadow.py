"""Twin of rays/shadow.wgsl: the shadow ray's record and whether it reached the light."""

from typing import Any

import numpy as np

from bvh.oracle import Trace
from bvh.rays import Rays, make_rays
from passes.twins.hits import Hits
from passes.twins.light import SHADOW_T_MAX, light_point


def load_ray(frame: Any, records: Any) -> Rays:
    origin = records["origin"]
    return make_rays(origin, light_point(frame, records["light_uv"]) - origin, 0.0, SHADOW_T_MAX)


def ray_slot(records: Any) -> Any:
    return records["slot"]


def store_result(results: Any, records: Any, result: Trace | Hits, index: Any = None) -> None:
    """By slot: 1 lit, 0 in shadow."""
    results[records["slot"]] = (~result.hit).astype(np.uint32)
