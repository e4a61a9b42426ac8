"""The time line of one frame: what ran from when to when."""

from collections.abc import Sequence
from dataclasses import dataclass

from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark_region
from engine.view.panels.colours import series_colour
from engine.view.panels.history import nice_ceiling


@dataclass(frozen=True, slots=True)
class Span:
    """`begin` and `end` in ms since the frame's start. Spans of one `lane` share a line; `note` is
    added to what hovering shows."""

    name: str
    begin: float
    end: float
    lane: str = ""
    note: str = ""


def draw_spans(name: str, spans: Sequence[Span], width: float = 0.0) -> Span | None:
    """Bars over a scale in ms, a line per lane in order of appearance; `width` 0 is all that is
    left. Returns the span under the mouse. A bar is never thinner than a pixel."""
    width = width or max(80.0, imgui.get_content_region_avail().x)
    lanes = list(dict.fromkeys(span.lane for span in spans))
    gutter = max((imgui.calc_text_size(lane).x for lane in lanes), default=0.0)
    gutter += imgui.get_style().item_spacing.x if gutter else 0.0
    line = imgui.get_text_line_height() + 4
    corner = imgui.get_cursor_screen_pos()
    left = corner.x + gutter
    total = max((span.end for span in spans), default=0.0)
    scale = (width - gutter - 1) / total if total > 0 else 0.0
    draw = imgui.get_window_draw_list()
    colour = imgui.get_color_u32
    height = line * max(1, len(lanes))
    _draw_scale(draw, imgui.ImVec2(left, corner.y + height), height, total, scale)

    hovered: Span | None = None
    inside = imgui.is_window_hovered()
    mouse = imgui.get_io().mouse_pos
    for index, lane in enumerate(lanes):
        draw.add_text(
            imgui.ImVec2(corner.x, corner.y + index * line + 2),
            colour(theme.opaque(theme.DIM)),
            lane,
        )
    for span in spans:
        y = corner.y + lanes.index(span.lane) * line
        low = imgui.ImVec2(left + span.begin * scale, y + 1)
        high = imgui.ImVec2(max(left + span.end * scale, low.x + 1), y + line - 1)
        hot = inside and low.x <= mouse.x < high.x and low.y <= mouse.y < high.y
        if hot:
            hovered = span
        fill = series_colour(span.name)
        draw.add_rect_filled(low, high, colour(theme.opaque(fill, 1.0 if hot else 0.85)), 2.0)
        if imgui.calc_text_size(span.name).x + 6 < high.x - low.x:
            draw.add_text(
                imgui.ImVec2(low.x + 3, y + 2), colour(theme.opaque(theme.PANEL)), span.name
            )
        mark_region(f"{name}.{span.name}", low, high)
    imgui.dummy(imgui.ImVec2(width, height + imgui.get_text_line_height_with_spacing()))
    if hovered is not None:
        lines = f"{hovered.name}: {hovered.end - hovered.begin:.3f} ms\n"
        lines += f"{hovered.begin:.3f} to {hovered.end:.3f} ms"
        imgui.set_tooltip(f"{lines}\n{hovered.note}" if hovered.note else lines)
    return hovered


def _draw_scale(
    draw: imgui.ImDrawList, foot: imgui.ImVec2, height: float, total: float, scale: float
) -> None:
    """Ticks at round times, as many as have room; `foot` is the scale's left end."""
    if scale <= 0:
        return
    step = nice_ceiling(max(total / 8, 60.0 / scale))
    line = imgui.get_color_u32(theme.opaque(theme.LINE))
    text = imgui.get_color_u32(theme.opaque(theme.DIM))
    for tick in range(int(total / step) + 1):
        x = foot.x + tick * step * scale
        draw.add_line(imgui.ImVec2(x, foot.y - height), imgui.ImVec2(x, foot.y + 3), line)
        label = f"{tick * step:g} ms" if tick == 0 else f"{tick * step:g}"
        if x + imgui.calc_text_size(label).x <= foot.x + total * scale:
            draw.add_text(imgui.ImVec2(x + 2, foot.y + 1), text, label)
