"""Twin of display_history.wgsl: how many frames are remembered of a light, as grey."""

from typing import Any

import numpy as np

from passes.twins.gbuffer import tile_pixels
from passes.twins.wgsl_functions import U32, clamp, store_unorm, unpack_2x16_float


def display_history(frame: Any, display: Any, filter_view: Any, history: U32, shown: Any) -> None:
    pixels = tile_pixels(frame)
    words = history[int(filter_view["after"]) + pixels.index, 3]
    remembered = np.maximum(unpack_2x16_float(words)[:, 0] - np.float32(1.0), np.float32(0.0))
    low, high = np.float32(display["low"]), np.float32(display["high"])
    grey = clamp((remembered - low) / np.maximum(high - low, np.float32(1.0e-6)), 0.0, 1.0)
    store_unorm(shown, pixels, np.repeat(grey[:, None], 3, axis=1))
