"""Twin of environment.wgsl: the sky's three colours, blended by height."""

from typing import Any

import numpy as np

from passes.twins.wgsl_functions import F32, clamp, mix, normalize


def environment(frame: Any, direction: F32) -> F32:
    """[n, 3] radiance from `direction` [n, 3] of any length."""
    height = normalize(direction)[..., 1:2]
    zenith, horizon, ground = _colors(frame)
    above = mix(horizon, zenith, np.sqrt(clamp(height, 0.0, 1.0)))
    below = mix(horizon, ground, np.sqrt(clamp(-height, 0.0, 1.0)))
    return np.where(height >= 0.0, above, below)


def ambient_radiance(frame: Any, normal: F32) -> F32:
    """[n, 3] radiance that a surface with `normal` [n, 3] receives from the sky."""
    up = np.float32(0.5) * (normal[..., 1:2] + 1.0)
    zenith, horizon, ground = _colors(frame)
    return mix(0.5 * (ground + horizon), 0.5 * (zenith + horizon), up)


def _colors(frame: Any) -> tuple[F32, F32, F32]:
    zenith, horizon, ground = (
        frame[f"environment_{name}"][:3] for name in ("zenith", "horizon", "ground")
    )
    return zenith, horizon, ground
