"""Twin of lobe_radius.wgsl: how wide a reflection's lobe is on the picture."""

from typing import Any

import numpy as np

from passes.twins.wgsl_functions import F32


def lobe_angle(roughness: F32) -> F32:
    """[n] radians"""
    return np.asarray(np.float32(2.0) * roughness * roughness)


def lobe_radius(frame: Any, roughness: F32, distance: F32, away: F32) -> F32:
    """[n] pixels"""
    spread = np.float32(frame["pixel_spread"])
    wide = lobe_angle(roughness) * distance / (distance + away) / spread
    return np.asarray(wide)
