"""Twin of display_surface.wgsl: one field of the G-buffer as grey, RGB or colours of ids."""

from typing import Any

import numpy as np

from passes.display_records import SURFACE_FIELDS, chosen_range
from passes.twins.gbuffer import NOTHING, tile_pixels, unpack_surface
from passes.twins.tone_map import linear_to_srgb
from passes.twins.wgsl_functions import F32, U32, clamp, store_unorm

GOLDEN_RATIO = np.uint32(2654435769)  # its fraction of 2^32


def nearness(metres: F32, low: np.float32, high: np.float32) -> F32:
    """1 where nearest, a tenth at the far end, evenly in 1 / depth."""
    one = np.float32(1.0)
    if high <= low:
        return np.ones_like(metres)
    far = one / high
    place = clamp((one / metres - far) / (one / low - far), 0.0, 1.0)
    return np.asarray(np.float32(0.1) + np.float32(0.9) * place)


def id_colors(ids: U32) -> F32:
    """[n, 3] well-spread colours: the golden ratio walks round the hues, with two brightnesses."""
    hue = ((ids * GOLDEN_RATIO) >> np.uint32(8)).astype(np.float32) * np.float32(6.0 / 16777216.0)
    k = hue[:, None] + np.array([5.0, 3.0, 1.0], np.float32)
    k = np.where(k >= 6.0, k - np.float32(6.0), k)
    value = np.where(ids % 2 == 0, np.float32(0.95), np.float32(0.65))[:, None]
    lack = np.float32(0.7) * clamp(np.minimum(k, np.float32(4.0) - k), 0.0, 1.0)
    return np.asarray(value * (np.float32(1.0) - lack))


def display_surface(
    frame: Any,
    display: Any,
    display_range: Any,
    visibility: U32,
    surface: U32,
    depth: F32,
    shown: Any,
) -> None:
    pixels = tile_pixels(frame)
    colors = np.zeros((len(pixels.index), 3), np.float32)
    covered = visibility[pixels.y, pixels.x, 0] != NOTHING
    here = pixels[covered]
    seen, s = visibility[here.y, here.x], unpack_surface(surface[here.y, here.x])
    name = SURFACE_FIELDS[int(display["field"])]
    if name == "normal":
        colors[covered] = np.float32(0.5) * s.shading_normal + np.float32(0.5)
    elif name == "base_color":
        colors[covered] = linear_to_srgb(s.base_color)
    elif name in ("material", "object", "primitive"):
        ids = {"material": s.material, "object": seen[:, 0], "primitive": seen[:, 1]}[name]
        colors[covered] = id_colors(ids)
    else:
        if name == "depth":
            grey = nearness(depth[here.y, here.x], *chosen_range(display, display_range))
        else:
            grey = s.roughness if name == "roughness" else s.metalness
        colors[covered] = grey[:, None]
    store_unorm(shown, pixels, colors)
