"""Twin of gbuffer_rays.wgsl: primary rays, traced by the oracle."""

from typing import Any

import numpy as np

from bvh.oracle import trace
from bvh.rays import RayFlags, make_rays
from passes.frame_options import FULL_MASK
from passes.twins.camera import camera_direction
from passes.twins.gbuffer import tile_pixels
from passes.twins.pixel_hit import SPHERE_LEFT
from passes.twins.rays.reflection import INFINITE_T
from passes.twins.traverse_queue import FAILED_STACK, alpha_test
from passes.twins.wgsl_functions import U32


def gbuffer_rays(
    frame: Any,
    bvh: U32,
    alpha: U32,
    texels: U32,
    ids_out: U32,
    primary_failed: U32,
    *,
    mask: int = FULL_MASK,
    flags: RayFlags = RayFlags.NONE,
) -> None:
    """Writes `ids_out` [height, width, 2]: object and primitive."""
    pixels = tile_pixels(frame)
    rays = make_rays(
        frame["camera_origin"][:3], camera_direction(frame, pixels.x, pixels.y), 0.0, INFINITE_T
    )
    accept = alpha_test(alpha, texels)
    result = trace(bvh.reshape(-1), rays, mask=mask, flags=flags, accept=accept)
    if result.overflows.any():
        primary_failed[0] |= FAILED_STACK
    primitive = np.where(result.leaves, result.primitive | SPHERE_LEFT, result.primitive)
    ids_out[pixels.y, pixels.x] = np.stack([result.object, primitive], -1)
