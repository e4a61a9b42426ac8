"""Turns arrays into pictures: PNG files, heat maps with a palette and a legend, AOV views.

Pictures are U8 [h, w, 3] sRGB; palettes are those of passes/palettes.py.
"""

import base64
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from passes.palettes import palette_colours
from passes.slot_counts import COUNT_LABELS

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]

LEGEND_HEIGHT = 44  # pixels under an exported heat map


def palette(name: str = "heat") -> U8:
    """[256, 3] colours of one of passes.palettes."""
    return palette_colours(name)


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Palette indices U8 [h, w] and the range of values that they span.

    `high` is the 99.9th percentile where auto-ranged: single worst pixels would otherwise make
    the rest dark; they are clamped, and `maximum` still tells them.
    """

    indices: U8
    low: float
    high: float
    maximum: float
    palette_name: str


def heat_map(
    values: NDArray[np.generic], high: float | None = None, palette_name: str = "heat"
) -> HeatMap:
    """Counts [h, w] from 0 to `high`; give `high` to compare two pictures."""
    counts = np.asarray(values, np.float64)
    maximum = float(counts.max(initial=0.0))
    if high is None:
        high = float(np.percentile(counts, 99.9)) if counts.size else 0.0
    # A picture of nothing is all lowest colour, not a division by zero.
    scale = 255.0 / high if high > 0 else 0.0
    indices = np.clip(np.rint(counts * scale), 0, 255).astype(np.uint8)
    return HeatMap(indices, 0.0, high, maximum, palette_name)


def colour(heat: HeatMap) -> U8:
    """The heat map as sRGB [h, w, 3], without a legend."""
    return palette(heat.palette_name)[heat.indices]


def with_legend(heat: HeatMap, label: str) -> U8:
    """The heat map with a strip below it: the palette, its ends and what is counted."""
    height, width = heat.indices.shape
    image = Image.new("RGB", (width, height + LEGEND_HEIGHT), (16, 16, 20))
    image.paste(Image.fromarray(colour(heat)), (0, 0))
    strip_width = max(1, min(width - 16, 256))
    ramp = palette(heat.palette_name)[np.linspace(0, 255, strip_width).astype(np.uint8)]
    image.paste(Image.fromarray(np.tile(ramp[None], (12, 1, 1))), (8, height + 6))
    draw = ImageDraw.Draw(image)
    text = f"{label}: {heat.low:.0f} to {heat.high:.0f} (most {heat.maximum:.0f})"
    draw.text((8, height + 22), text, fill=(230, 230, 235), font=ImageFont.load_default(14))
    return np.asarray(image)


def save_png(path: Path, pixels: U8) -> None:
    """Writes [h, w, 3] as PNG; the caller gives a path inside treeline.outputs."""
    Image.fromarray(np.ascontiguousarray(pixels)).save(path, format="PNG")


def heat_map_uri(heat: HeatMap) -> str:
    """A data URI of the bare heat map, as a PNG with a colour table: exact and small."""
    image = Image.fromarray(heat.indices, mode="P")
    image.putpalette(palette(heat.palette_name).tobytes())
    return _data_uri(image, "PNG", optimize=True)


def picture_uri(pixels: U8) -> str:
    """A data URI of a picture, as a JPEG of high quality: the PNG lies beside the page."""
    return _data_uri(Image.fromarray(np.ascontiguousarray(pixels)), "JPEG", quality=92)


def _data_uri(image: Image.Image, kind: str, **options: object) -> str:
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **options)
    encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/{kind.lower()};base64,{encoded}"


def view_aov(name: str, values: NDArray[np.generic]) -> U8:
    """An arbitrary output value of the frame as a picture.

    depth: white near, black far and on a miss; normal: XYZ of -1..1 as RGB; roughness and
    metalness: grey; base_color: as sRGB; material, object: one colour an id, black on a miss;
    <count>/<ray type>: a heat map with its legend.
    """
    count, _, ray_type = name.partition("/")
    if ray_type:
        return with_legend(
            heat_map(values), f"{COUNT_LABELS[count][0]}, {ray_type} rays of a pixel"
        )
    if name == "normal":
        return _to_bytes(np.asarray(values, np.float64)[..., :3] * 0.5 + 0.5)
    if name == "base_color":
        return _to_bytes(np.asarray(values, np.float64)[..., :3] ** (1 / 2.2))
    if name in ("material", "object"):
        return _id_colours(np.asarray(values, np.int64))
    grey = np.asarray(values, np.float64)
    if name == "depth":
        grey = _nearness(grey)
    return _to_bytes(np.repeat(grey[..., None], 3, axis=2))


def _to_bytes(unit: NDArray[np.float64]) -> U8:
    return np.rint(np.clip(np.nan_to_num(unit), 0, 1) * 255).astype(np.uint8)


def _nearness(depth: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 at the nearest hit down to 0.1 at the farthest, evenly in 1/depth; 0 on a miss."""
    hit = np.isfinite(depth) & (depth > 0)
    result = np.zeros_like(depth)
    if hit.any():
        inverse = 1.0 / depth[hit]
        low, span = inverse.min(), np.ptp(inverse)
        result[hit] = 0.1 + 0.9 * ((inverse - low) / span if span > 0 else 1.0)
    return result


def _id_colours(ids: NDArray[np.int64]) -> U8:
    """Well-spread colours: the golden ratio walks round the hues, with two brightnesses."""
    hue = (ids * 0.6180339887498949) % 1.0 * 6.0
    offsets = np.array([5.0, 3.0, 1.0])
    k = (hue[..., None] + offsets) % 6.0
    value = np.where(ids % 2 == 0, 0.95, 0.65)[..., None]
    rgb = value * (1.0 - 0.7 * np.clip(np.minimum(k, 4.0 - k), 0.0, 1.0))
    return np.where((ids >= 0)[..., None], _to_bytes(rgb), 0).astype(np.uint8)
