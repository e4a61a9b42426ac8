"""The ray record that every tracer reads, and the flags a trace call gives to all its rays.

`t` is measured in units of the given direction, which nobody renormalises. The interval is open
on both sides: a crossing counts when `t_min < t < t_max`.
"""

from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.gpu.structs import Field, Struct

RAY_RECORD = Struct(
    "Ray",
    Field("origin", "f32", 3),
    Field("t_min", "f32"),
    Field("direction", "f32", 3),
    Field("t_max", "f32"),
)
RAY = RAY_RECORD.dtype  # 32 bytes
Rays = NDArray[Any]  # [n] of RAY

MISS_ID = 0xFFFFFFFF  # object, primitive and instance of a ray that hit nothing

# A direction component below the smallest normal float32 counts as zero: its reciprocal would
# overflow, and a GPU may flush it anyway.
SMALLEST_COMPONENT = np.float32(2.0**-126)


class RayFlags(IntFlag):
    """What a trace call asks of every ray. Values as SPIR-V's RayFlags, but for REJECT.

    Opacity flags beat the instance's and the geometry's; with both set, NON_OPAQUE wins. With
    REJECT, which is ours, every any-hit call refuses its candidate without a test: the most calls
    that rays can make.
    """

    NONE = 0
    OPAQUE = 1
    NON_OPAQUE = 2
    CULL_BACK_FACING = 16
    CULL_FRONT_FACING = 32
    CULL_OPAQUE = 64
    CULL_NON_OPAQUE = 128
    REJECT = 1 << 16


def make_rays(
    origins: ArrayLike,
    directions: ArrayLike,
    t_min: ArrayLike = 0.0,
    t_max: ArrayLike = np.inf,
) -> Rays:
    """Records from `[n, 3]` (or broadcastable) origins and directions, rounded to float32."""
    o, d = np.broadcast_arrays(
        np.atleast_2d(np.asarray(origins)), np.atleast_2d(np.asarray(directions))
    )
    rays = np.zeros(len(o), RAY)
    rays["origin"], rays["direction"] = o, d
    rays["t_min"], rays["t_max"] = t_min, t_max
    return rays


def valid_rays(rays: Rays) -> NDArray[np.bool_]:
    """Rays that a tracer walks: finite origin and direction, a direction that is not zero,
    0 <= t_min < inf, t_min <= t_max and no NaN (GPURT's checks). The others hit nothing."""
    direction = rays["direction"]
    finite = np.isfinite(rays["origin"]).all(1) & np.isfinite(direction).all(1)
    moving = (np.abs(np.nan_to_num(direction)) >= SMALLEST_COMPONENT).any(1)
    t_min, t_max = rays["t_min"], rays["t_max"]
    # Comparisons with NaN are false, so NaN in either end is refused here too.
    interval = (t_min >= 0) & (t_min < np.inf) & (t_min <= t_max)
    return np.asarray(finite & moving & interval)
