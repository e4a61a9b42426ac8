"""What a walk of the oracle is asked for, and the arrays that it fills."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.rays import MISS_ID, RayFlags

U32 = NDArray[np.uint32]
Accept = Callable[[U32, U32, NDArray[np.float32], NDArray[np.float32]], NDArray[np.bool_]]

COUNTERS = (
    "nodes",
    "box_tests",
    "box_hits",
    "triangle_tests",
    "triangle_hits",
    "instance_hits",
    "any_hits",
    "stack_max",
)
RESULTS: dict[str, tuple[Any, Any]] = {  # name -> (dtype, value of a miss)
    "t": (np.float32, np.inf),
    "u": (np.float32, 0),
    "v": (np.float32, 0),
    "object": (np.uint32, MISS_ID),
    "primitive": (np.uint32, MISS_ID),
    "instance": (np.uint32, MISS_ID),
    "pointer": (np.uint32, MISS_ID),
    "crossings": (np.uint32, 0),
    "overflows": (np.uint32, 0),
    "invalid": (np.bool_, False),
}


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """What one trace call asks for; see `bvh.oracle.trace`."""

    any_hit: bool
    count_all: bool
    mask: int
    flags: RayFlags
    accept: Accept | None
    sort: bool
    stack_limit: int
    step_limit: int
