"""What is written over the picture: which output is shown and what its colours mean, or what the
picture waits for."""

from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark_region
from engine.view.panels.legend import gradient
from passes.palettes import DIVERGING, palette_colours
from treeline.view.view_state import ViewState

PADDING = 5.0
GRADIENT_EMS = 6.0
LEAST_EMS = 14.0  # a narrower picture has no caption

Point = tuple[float, float]


def draw_caption(state: ViewState, corner: Point, size: Point) -> None:
    """In the upper left corner of anything but the picture itself: a heat map's colours would mean
    nothing while another panel than its own is open."""
    output = state.seen.output
    if output is None or output.name == "picture" or size[0] < LEAST_EMS * imgui.get_font_size():
        return
    rays = f", {output.ray_type} rays" if output.kind == "count" else ""
    signed = state.difference and state.seen.has_baseline
    texts = [f"{output.label}{rays}{', difference' if signed else ''}"]
    known = state.seen.range if output.kind == "count" else None
    if known is not None:
        texts += [f"{end:.4g}" for end in known]
    space = imgui.get_style().item_spacing.x
    wide = sum(imgui.calc_text_size(text).x for text in texts)
    bar = GRADIENT_EMS * imgui.get_font_size() if known is not None else 0.0
    wide += bar + 2 * PADDING + (3 * space if known is not None else 0.0)
    high = imgui.get_text_line_height() + 2 * PADDING
    low = imgui.ImVec2(corner[0] + PADDING, corner[1] + PADDING)
    end = imgui.ImVec2(low.x + wide, low.y + high)
    ground = imgui.color_convert_float4_to_u32(imgui.ImVec4(*theme.opaque(theme.PANEL, 0.8)))
    imgui.get_window_draw_list().add_rect_filled(low, end, ground, 3.0)
    imgui.set_cursor_screen_pos((low.x + PADDING, low.y + PADDING))
    imgui.text_unformatted(texts[0])
    if known is not None:
        imgui.same_line()
        imgui.text_unformatted(texts[1])
        imgui.same_line()
        palette = DIVERGING if signed else state.palette
        gradient(palette_colours(palette), bar, imgui.get_text_line_height())
        imgui.same_line()
        imgui.text_unformatted(texts[2])
    mark_region("caption", low, end)


def draw_waiting(text: str, corner: Point, size: Point) -> None:
    """In the middle, before there is a first picture."""
    wide = imgui.calc_text_size(text)
    place = (corner[0] + 0.5 * (size[0] - wide.x), corner[1] + 0.5 * (size[1] - wide.y))
    imgui.set_cursor_screen_pos((max(place[0], corner[0] + PADDING), place[1]))
    imgui.text_disabled(text)
