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

from passes.outputs import Output
from passes.palettes import DIVERGING, NO_RAY, palette_colours
from passes.slot_counts import COUNT_LABELS
from passes.twins.display_surface import id_colors
from passes.twins.tone_map import linear_to_srgb

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


@dataclass(frozen=True, slots=True)
class Legend:
    """What a heat map says below itself: the palette from `low` to `high` with the values' unit.
    `maximum` None: not told. `signed`: a difference, its values with their sign. `no_ray`: pixels
    that sent no ray have a colour of their own."""

    label: str
    low: float
    high: float
    unit: str = ""
    palette_name: str = "viridis"
    maximum: float | None = None
    signed: bool = False
    no_ray: bool = False

    def value(self, number: float) -> str:
        """Whole numbers whole, others to three digits."""
        whole = f"{number:{'+' * self.signed},.0f}" if float(number).is_integer() else ""
        return whole or f"{number:{'+' * self.signed},.3g}"


def output_legend(
    output: Output,
    value_range: tuple[float, float],
    palette_name: str,
    maximum: float | None = None,
    *,
    difference: bool = False,
) -> Legend:
    """Of a heat map as passes.display shows it with these arguments."""
    label = f"{output.label}, {output.ray_type} rays of a pixel"
    if difference:
        label, palette_name = f"difference in {label}", DIVERGING
    return Legend(label, *value_range, output.unit, palette_name, maximum, difference, True)


def add_legend(pixels: U8, legend: Legend) -> U8:
    """A strip of LEGEND_HEIGHT below a picture [h, w, 3]: the palette between its ends, the colour
    of pixels that sent no ray, and what is counted, in letters that fit the width or not at all."""
    height, width = pixels.shape[:2]
    image = Image.new("RGB", (width, height + LEGEND_HEIGHT), (16, 16, 20))
    image.paste(Image.fromarray(np.ascontiguousarray(pixels)), (0, 0))
    draw = ImageDraw.Draw(image)

    def text(x: int, y: int, words: str, room: int) -> int:
        """Draws it in the largest letters that fit `room`; gives its width."""
        for size in range(13, 6, -1):
            font = ImageFont.load_default(size)
            if draw.textlength(words, font=font) <= room:
                draw.text((x, y), words, fill=(230, 230, 235), font=font)
                return int(draw.textlength(words, font=font))
        return 0

    inner = max(1, width - 16)
    top = height + 6
    x = 8 + text(8, top - 2, legend.value(legend.low), inner // 5) + 6
    strip = max(1, min(2 * inner // 5, 256))
    ramp = palette(legend.palette_name)[np.linspace(0, 255, strip).astype(np.uint8)]
    image.paste(Image.fromarray(np.tile(ramp[None], (12, 1, 1))), (x, top))
    x += strip + 6
    x += text(x, top - 2, f"{legend.value(legend.high)} {legend.unit}", 3 * inner // 10) + 14
    if legend.no_ray and x + 60 < width:
        draw.rectangle((x, top, x + 11, top + 11), fill=NO_RAY, outline=(90, 90, 96))
        text(x + 17, top - 2, "no ray", inner // 5)
    most = "" if legend.maximum is None else f" (most {legend.maximum:,.0f})"
    text(8, top + 17, legend.label + most, inner)
    return np.asarray(image)


def with_legend(heat: HeatMap, label: str, unit: str = "") -> U8:
    """The heat map with its legend below."""
    legend = Legend(label, heat.low, heat.high, unit, heat.palette_name, heat.maximum)
    return add_legend(colour(heat), legend)


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
        label, unit = COUNT_LABELS[count]
        return with_legend(heat_map(values), f"{label}, {ray_type} rays of a pixel", unit)
    if name == "normal":
        return _to_bytes(np.asarray(values, np.float64)[..., :3] * 0.5 + 0.5)
    if name == "base_color":
        linear = np.asarray(values, np.float32)[..., :3]
        return _to_bytes(linear_to_srgb(linear).astype(np.float64))
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
    """As the display pass shows ids; black on a miss."""
    colours = id_colors(np.maximum(ids, 0).astype(np.uint32).ravel()).reshape(*ids.shape, 3)
    colours *= (ids >= 0)[..., None]
    return _to_bytes(colours.astype(np.float64))
