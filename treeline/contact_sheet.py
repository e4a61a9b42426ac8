"""Pictures side by side, each with a line of text below it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

U8 = NDArray[np.uint8]

BACKGROUND = (16, 16, 20)
INK = (230, 230, 235)
GAP = 4  # pixels between pictures
LETTERS = (14, 6)  # largest and smallest size of a caption


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture [height, width, 3] sRGB and its caption; each line of it is one of the sheet's."""

    caption: str
    pixels: U8


def contact_sheet(panels: Sequence[Panel], columns: int) -> U8:
    """[rows, width, 3]: the panels in reading order, in cells of the largest one's size. ValueError
    without panels."""
    if not panels:
        raise ValueError("a contact sheet of no pictures")
    lines = max(panel.caption.count("\n") + 1 for panel in panels)
    strip = lines * (LETTERS[0] + 4) + 6
    height = max(panel.pixels.shape[0] for panel in panels)
    width = max(panel.pixels.shape[1] for panel in panels)
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    size = (
        columns * width + (columns - 1) * GAP,
        rows * (height + strip) + (rows - 1) * GAP,
    )
    sheet = Image.new("RGB", size, BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        x, y = column * (width + GAP), row * (height + strip + GAP)
        sheet.paste(Image.fromarray(np.ascontiguousarray(panel.pixels)), (x, y))
        _write(draw, panel.caption, x + 4, y + height + 3, width - 8)
    return np.asarray(sheet)


def _write(draw: ImageDraw.ImageDraw, text: str, x: int, y: int, room: int) -> None:
    """Each line in the largest letters that fit `room` pixels; cut where none do."""
    largest, smallest = LETTERS
    for number, line in enumerate(text.split("\n")):
        for size in range(largest, smallest - 1, -1):
            font = ImageFont.load_default(size)
            if draw.textlength(line, font=font) <= room:
                break
        while line and draw.textlength(line, font=font) > room:
            line = line[:-1]
        draw.text((x, y + number * (largest + 4)), line, fill=INK, font=font)
