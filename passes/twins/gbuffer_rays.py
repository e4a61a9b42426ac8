"""Twin of gbuffer_rays.wgsl: primary rays, traced by the oracle."""

from typing import Any

import numpy as np

from bvh.oracle import trace
from bvh.rays import make_rays
from passes.twins.gbuffer import camera_direction, tile_pixels
from passes.twins.traverse_queue import FAILED_STACK, INFINITE_T, alpha_test
from passes.twins.wgsl_functions import U32, to_words


def gbuffer_rays(
    frame: Any, bvh: U32, alpha: U32, texels: U32, visibility_out: U32, primary_failed: U32
) -> None:
    """Writes `visibility_out` [height, width, 4]: object, primitive, bits of u and v."""
    pixels = tile_pixels(frame)
    rays = make_rays(
        frame["camera_origin"][:3], camera_direction(frame, pixels.x, pixels.y), 0.0, INFINITE_T
    )
    result = trace(bvh.reshape(-1), rays, accept=alpha_test(alpha, texels))
    if result.overflows.any():
        primary_failed[0] |= FAILED_STACK
    visibility_out[pixels.y, pixels.x] = np.stack(
        [result.object, result.primitive, to_words(result.u), to_words(result.v)], -1
    )
