"""Twin of display_counts.wgsl: counts as a heat map."""

from typing import Any

import numpy as np

from passes.display_records import chosen_range
from passes.palettes import NO_RAY
from passes.twins.display_count import pixel_counts
from passes.twins.gbuffer import tile_pixels
from passes.twins.wgsl_functions import U32, clamp, store_unorm, unpack_4x8_unorm


def display_counts(
    frame: Any,
    display: Any,
    display_range: Any,
    slot_counts: U32,
    baseline: U32,
    palette: U32,
    shown: Any,
) -> None:
    pixels = tile_pixels(frame)
    low, high = chosen_range(display, display_range)
    steps, first, middle = (254.0, 0.0, 128.0) if display["difference"] else (255.0, low, 0.0)
    scale = np.float32(steps) / (high - low) if high > low else np.float32(0.0)
    counts = pixel_counts(frame, display, slot_counts, baseline, pixels.index)
    place = (counts.value.astype(np.float32) - np.float32(first)) * scale + np.float32(middle)
    colors = unpack_4x8_unorm(palette[np.rint(clamp(place, 0.0, 255.0)).astype(np.int64)])[:, :3]
    nothing = np.array(NO_RAY, np.float32) / np.float32(255.0)
    store_unorm(shown, pixels, np.where(counts.sent[:, None], colors, nothing))
