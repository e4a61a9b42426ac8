"""What the colours of a heat map mean: the palette with its ends, and which range it spans."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark
from engine.view.panels.range_slider import range_slider

STEPS = 32  # pieces of the gradient; colours in between are interpolated


def gradient(colours: npt.NDArray[Any], width: float, height: float) -> None:
    """Draws a palette [n, 3] of bytes, low values at the left, at the cursor."""
    corner = imgui.get_cursor_screen_pos()
    draw = imgui.get_window_draw_list()
    ends = _ends(np.ascontiguousarray(colours, np.uint8).tobytes())
    for step in range(STEPS):
        left, right = ends[step], ends[step + 1]
        draw.add_rect_filled_multi_color(
            imgui.ImVec2(corner.x + width * step / STEPS, corner.y),
            imgui.ImVec2(corner.x + width * (step + 1) / STEPS, corner.y + height),
            left,
            right,
            right,
            left,
        )
    imgui.dummy(imgui.ImVec2(width, height))


@lru_cache(maxsize=16)
def _ends(colours: bytes) -> tuple[int, ...]:
    """Of the pieces, as imgui packs colours; `colours` are [n, 3]."""
    last = len(colours) // 3 - 1
    places = (3 * (step * last // STEPS) for step in range(STEPS + 1))
    return tuple(
        0xFF000000 | colours[p + 2] << 16 | colours[p + 1] << 8 | colours[p] for p in places
    )


def legend(
    name: str,
    colours: npt.NDArray[Any],
    shown: tuple[float, float],
    limits: tuple[float, float],
    *,
    automatic: bool,
    unit: str = "",
    marker: float | None = None,
    form: str = ",.4g",
) -> tuple[float, float] | str | None:
    """The palette's bar with `shown` range's ends as labels, a tick at `marker` (the value under
    the cursor), a slider within `limits`, and the "auto" button. Returns a new range, "auto" when
    the button was pressed, or None.
    """
    width = imgui.get_content_region_avail().x
    corner = imgui.get_cursor_screen_pos()
    height = imgui.get_text_line_height()
    gradient(colours, width, height)
    mark(f"{name}.palette")
    low, high = shown
    if marker is not None and high > low:
        part = min(max((marker - low) / (high - low), 0.0), 1.0)
        x = corner.x + part * width
        draw = imgui.get_window_draw_list()
        for half, colour in ((2.5, (0.0, 0.0, 0.0)), (1.0, (1.0, 1.0, 1.0))):
            draw.add_rect_filled(
                imgui.ImVec2(x - half, corner.y - 2),
                imgui.ImVec2(x + half, corner.y + height + 2),
                imgui.get_color_u32(theme.opaque(colour)),
            )
    suffix = f" {unit}" if unit else ""
    imgui.text(f"{low:{form}}")
    right = f"{high:{form}}{suffix}"
    if marker is not None:
        middle = f"{marker:{form}}{suffix}"
        imgui.same_line(0.5 * (width - imgui.calc_text_size(middle).x))
        imgui.text(middle)
    imgui.same_line(max(0.0, width - imgui.calc_text_size(right).x))
    imgui.text(right)

    button = imgui.calc_text_size("auto").x + 2 * imgui.get_style().frame_padding.x
    space = imgui.get_style().item_spacing.x
    changed = range_slider(
        f"{name}.range", low, high, *limits, width=width - button - space, form=form
    )
    imgui.same_line()
    if automatic:
        imgui.push_style_color(imgui.Col_.button, theme.opaque(theme.ACCENT))
    pressed = imgui.button(f"auto##{name}")
    if automatic:
        imgui.pop_style_color()
    mark(f"{name}.auto")
    imgui.set_item_tooltip("Fit the range to what is shown, and keep it so")
    return "auto" if pressed else changed
