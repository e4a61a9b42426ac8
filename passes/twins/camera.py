"""Twin of camera.wgsl: the direction that a pixel looks along."""

from typing import Any

import numpy as np

from passes.twins.wgsl_functions import F32, Index


def camera_direction(frame: Any, x: Index, y: Index) -> F32:
    """[n, 3] for pixels x, y [n]; not normalised: one unit along the view axis."""
    width, height = np.float32(frame["width"]), np.float32(frame["height"])
    px = (x.astype(np.float32) + np.float32(0.5)) / width * 2.0 - 1.0
    py = 1.0 - (y.astype(np.float32) + np.float32(0.5)) / height * 2.0
    forward, right, up = (frame[f"camera_{name}"][:3] for name in ("forward", "right", "up"))
    return np.asarray(forward + px[:, None] * right + py[:, None] * up)
