"""Twin of rays/occlusion.wgsl: the occlusion ray's record and whether the way was free."""

from typing import Any

import numpy as np

from bvh.oracle import Trace
from bvh.rays import Rays, make_rays
from passes.twins.hits import Hits
from passes.twins.octahedral import decode_normal


def load_ray(frame: Any, records: Any) -> Rays:
    direction = decode_normal(records["direction"])
    return make_rays(records["origin"], direction, 0.0, frame["occlusion_radius"])


def ray_slot(records: Any) -> Any:
    return records["pixel"]


def store_result(results: Any, records: Any, result: Trace | Hits, index: Any = None) -> None:
    """By pixel: 1 free, 0 occluded."""
    results[records["pixel"]] = (~result.hit).astype(np.uint32)
