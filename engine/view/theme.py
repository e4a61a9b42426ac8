"""A calm dark theme. Sizes are logical pixels; imgui draws them at the screen's pixel ratio."""

from pathlib import Path

import imgui_bundle
from imgui_bundle import imgui, implot

FONT_SIZE = 14.0

Rgb = tuple[float, float, float]
TEXT: Rgb = (0.86, 0.87, 0.89)
DIM: Rgb = (0.60, 0.62, 0.66)  # headers, units, what is off
PANEL: Rgb = (0.105, 0.11, 0.125)
FIELD: Rgb = (0.175, 0.185, 0.21)
RAISED: Rgb = (0.22, 0.235, 0.265)
ACCENT: Rgb = (0.24, 0.42, 0.62)
ACCENT_BRIGHT: Rgb = (0.32, 0.54, 0.78)
ACCENT_TEXT: Rgb = (0.55, 0.76, 0.98)
LINE: Rgb = (0.27, 0.28, 0.31)
WARNING: Rgb = (0.94, 0.72, 0.35)
ERROR: Rgb = (0.97, 0.52, 0.48)
GOOD: Rgb = (0.49, 0.80, 0.53)


def opaque(colour: Rgb, alpha: float = 1.0) -> tuple[float, float, float, float]:
    return (*colour, alpha)


def apply(scale: float = 1.0) -> None:
    """Sets the current imgui and implot contexts' style; `scale` enlarges text and spacing."""
    style = imgui.get_style()
    _reset(style)
    colour = imgui.Col_
    style.window_padding = imgui.ImVec2(8, 8)
    style.frame_padding = imgui.ImVec2(6, 3)
    style.cell_padding = imgui.ImVec2(5, 2)
    style.item_spacing = imgui.ImVec2(6, 4)
    style.item_inner_spacing = imgui.ImVec2(5, 4)
    style.indent_spacing = 14
    style.scrollbar_size = 11
    style.grab_min_size = 9
    style.window_border_size = 1
    style.frame_border_size = 0
    style.tab_border_size = 0
    style.window_rounding = 3
    style.frame_rounding = 3
    style.popup_rounding = 3
    style.grab_rounding = 3
    style.tab_rounding = 3
    style.scrollbar_rounding = 3
    for which, value in {
        colour.text: opaque(TEXT),
        colour.text_disabled: opaque(DIM),
        colour.window_bg: opaque(PANEL),
        colour.child_bg: opaque(PANEL, 0.0),
        colour.popup_bg: opaque(PANEL, 0.97),
        colour.menu_bar_bg: opaque(FIELD),
        colour.border: opaque(LINE),
        colour.separator: opaque(LINE),
        colour.frame_bg: opaque(FIELD),
        colour.frame_bg_hovered: opaque(RAISED),
        colour.frame_bg_active: opaque(RAISED),
        colour.button: opaque(RAISED),
        colour.button_hovered: opaque(ACCENT),
        colour.button_active: opaque(ACCENT_BRIGHT),
        colour.header: opaque(ACCENT, 0.55),
        colour.header_hovered: opaque(ACCENT, 0.75),
        colour.header_active: opaque(ACCENT),
        colour.check_mark: opaque(ACCENT_BRIGHT),
        colour.slider_grab: opaque(ACCENT_BRIGHT),
        colour.slider_grab_active: opaque(TEXT),
        colour.title_bg: opaque(FIELD),
        colour.title_bg_active: opaque(FIELD),
        colour.tab: opaque(FIELD),
        colour.tab_hovered: opaque(ACCENT),
        colour.tab_selected: opaque(RAISED),
        colour.tab_selected_overline: opaque(ACCENT_BRIGHT),
        colour.tab_dimmed: opaque(FIELD),
        colour.tab_dimmed_selected: opaque(RAISED),
        colour.table_header_bg: opaque(FIELD),
        colour.table_border_strong: opaque(LINE),
        colour.table_border_light: opaque(LINE, 0.6),
        colour.table_row_bg_alt: opaque(TEXT, 0.03),
        colour.resize_grip: opaque(RAISED),
        colour.plot_histogram: opaque(ACCENT_BRIGHT),
        colour.text_selected_bg: opaque(ACCENT),
        colour.nav_cursor: opaque(ACCENT_BRIGHT),
    }.items():
        style.set_color_(which, value)
    style.scale_all_sizes(scale)
    style.font_size_base = FONT_SIZE
    style.font_scale_main = scale
    plot = implot.get_style()
    plot.plot_padding = imgui.ImVec2(6, 6)
    plot.label_padding = imgui.ImVec2(4, 3)
    plot.legend_padding = imgui.ImVec2(6, 5)
    plot.plot_border_size = 0


def _reset(style: imgui.Style) -> None:
    """imgui's own dark style, whatever was set or scaled before."""
    fresh = imgui.Style()
    for name in dir(fresh):
        value = getattr(fresh, name)
        if not name.startswith("_") and not callable(value):
            setattr(style, name, value)
    imgui.style_colors_dark(style)


def load_fonts() -> None:
    """Roboto for text and Inconsolata for words in hexadecimal (`mono_font`), both of which come
    with imgui-bundle; imgui's built-in font where they are not there."""
    fonts = imgui.get_io().fonts
    folder = Path(imgui_bundle.__file__).parent / "assets" / "fonts"
    for name in ("Roboto/Roboto-Regular.ttf", "Inconsolata-Medium.ttf"):
        path = folder / name
        if path.is_file():
            fonts.add_font_from_file_ttf(str(path), FONT_SIZE)
        else:
            fonts.add_font_default()


def mono_font() -> imgui.ImFont:
    """The current context's font in which all characters have one width, for `imgui.push_font`."""
    return imgui.get_io().fonts.fonts[1]
