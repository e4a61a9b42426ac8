"""A slider with two handles. The bar between them moves both."""

from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark

HANDLE = 9.0  # width in logical pixels

_grabbed: dict[str, float] = {}  # name -> where the bar was taken, as a value


def range_slider(
    name: str,
    low: float,
    high: float,
    minimum: float,
    maximum: float,
    *,
    width: float = 0.0,
    whole: bool = False,
    form: str = ".3g",
) -> tuple[float, float] | None:
    """Draws at the cursor; `width` 0 is all that is left. Returns the new (low, high) while the
    user drags, None otherwise. low <= high within [minimum, maximum]; `whole` keeps to whole
    numbers. Each handle shows its value. Ends that are out of the limits are drawn at them.
    """
    span = maximum - minimum
    if not span > 0:
        imgui.text_disabled(f"{minimum:{form}}")
        return None
    width = width or max(60.0, imgui.get_content_region_avail().x)
    height = imgui.get_frame_height()
    corner = imgui.get_cursor_screen_pos()
    track = width - 2 * HANDLE

    def place(value: float, offset: float) -> float:
        part = min(max((value - minimum) / span, 0.0), 1.0)
        return corner.x + offset + part * track

    x_low, x_high = place(low, 0.0), place(high, HANDLE)
    mouse = imgui.get_io().mouse_pos.x
    result: tuple[float, float] | None = None

    def value_at(x: float, offset: float) -> float:
        value = minimum + (x - corner.x - offset) / track * span
        return float(round(value)) if whole else value

    def handle(which: str, x: float) -> bool:
        imgui.set_cursor_screen_pos(imgui.ImVec2(x, corner.y))
        imgui.invisible_button(f"##{name}.{which}", imgui.ImVec2(HANDLE, height))
        mark(f"{name}.{which}")
        return imgui.is_item_active()

    hot_low = handle("low", x_low)
    if hot_low:
        result = min(max(value_at(mouse - HANDLE / 2, 0.0), minimum), high), high
    hot_high = handle("high", x_high)
    if hot_high:
        result = low, max(min(value_at(mouse - HANDLE / 2, HANDLE), maximum), low)
    middle = x_high - x_low - HANDLE
    if middle > 1:
        imgui.set_cursor_screen_pos(imgui.ImVec2(x_low + HANDLE, corner.y))
        imgui.invisible_button(f"##{name}.bar", imgui.ImVec2(middle, height))
        mark(f"{name}.bar")
        if imgui.is_item_activated():
            _grabbed[name] = value_at(mouse, HANDLE) - low
        if imgui.is_item_active():
            size = high - low
            start = min(max(value_at(mouse, HANDLE) - _grabbed.get(name, 0.0), minimum), maximum)
            start = min(start, maximum - size)
            result = start, start + size

    draw = imgui.get_window_draw_list()
    colour = imgui.get_color_u32
    rounding = imgui.get_style().frame_rounding
    bottom = corner.y + height
    draw.add_rect_filled(
        corner,
        imgui.ImVec2(corner.x + width, bottom),
        colour(theme.opaque(theme.FIELD)),
        rounding,
    )
    draw.add_rect_filled(
        imgui.ImVec2(x_low, corner.y + 3),
        imgui.ImVec2(x_high + HANDLE, bottom - 3),
        colour(theme.opaque(theme.ACCENT, 0.7)),
        rounding,
    )
    for x, hot in ((x_low, hot_low), (x_high, hot_high)):
        draw.add_rect_filled(
            imgui.ImVec2(x, corner.y),
            imgui.ImVec2(x + HANDLE, bottom),
            colour(theme.opaque(theme.TEXT if hot else theme.ACCENT_BRIGHT)),
            rounding,
        )
    _draw_values(draw, corner, (x_low, x_high), width, (f"{low:{form}}", f"{high:{form}}"))
    imgui.set_cursor_screen_pos(corner)
    imgui.dummy(imgui.ImVec2(width, height))
    mark(name)
    return result


def _draw_values(
    draw: imgui.ImDrawList,
    corner: imgui.ImVec2,
    handles: tuple[float, float],
    width: float,
    texts: tuple[str, str],
) -> None:
    """The values beside their handles: inside of the bar where they fit, else outside, else not."""
    gap = 4.0
    sizes = [imgui.calc_text_size(text).x for text in texts]
    y = corner.y + imgui.get_style().frame_padding.y
    inside = handles[1] - handles[0] - HANDLE > sum(sizes) + 3 * gap
    if inside:
        xs = (handles[0] + HANDLE + gap, handles[1] - sizes[1] - gap)
    else:
        xs = (handles[0] - sizes[0] - gap, handles[1] + HANDLE + gap)
    for x, size, text in zip(xs, sizes, texts, strict=True):
        if corner.x <= x and x + size <= corner.x + width:
            draw.add_text(imgui.ImVec2(x, y), imgui.get_color_u32(theme.opaque(theme.TEXT)), text)
