"""Twin of rays/reflection.wgsl: the reflection ray's record and its hit."""

from typing import Any

import numpy as np

from bvh.oracle import Trace
from bvh.rays import Rays, make_rays
from passes.twins.hits import Hits

INFINITE_T = np.float32(3.4028235e38)


def load_ray(frame: Any, records: Any) -> Rays:
    return make_rays(records["origin"], records["direction"], 0.0, INFINITE_T)


def ray_slot(records: Any) -> Any:
    return records["pixel"]


def store_result(results: Any, records: Any, result: Trace | Hits, index: Any = None) -> None:
    """By queue index, 0 and on unless said; a miss has t = t_max."""
    rows = slice(len(records)) if index is None else index
    results["t"][rows] = np.minimum(result.t, INFINITE_T)
    for name in ("u", "v", "object", "primitive", "instance"):
        results[name][rows] = getattr(result, name)
