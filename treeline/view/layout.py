"""Where things are in the window: menu above, picture left, panels right, status below.

Sizes are logical pixels, times the interface's scale. The border between picture and panels can be
dragged; its place is a share of the window, so that a resize keeps the proportions.
"""

from dataclasses import dataclass

from imgui_bundle import imgui

PANEL_SHARE = 0.40  # of the window's width, unless the user drags the border
LEAST_PANEL = 260.0
LEAST_PICTURE = 200.0
BORDER = 5.0

_FIXED = (
    imgui.WindowFlags_.no_title_bar
    | imgui.WindowFlags_.no_resize
    | imgui.WindowFlags_.no_move
    | imgui.WindowFlags_.no_collapse
    | imgui.WindowFlags_.no_bring_to_front_on_focus
    | imgui.WindowFlags_.no_saved_settings
    | imgui.WindowFlags_.no_nav_focus
    | imgui.WindowFlags_.no_scrollbar
    | imgui.WindowFlags_.no_scroll_with_mouse
)


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of the window, logical pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    picture: Region
    border: Region
    panels: Region
    status: Region


def arrange(
    size: tuple[float, float], menu_height: float, status_height: float, panel_share: float
) -> Layout:
    """The regions of a window of `size`. A window too small for both keeps the panels and gives
    the picture what is left, at least one pixel."""
    width, height = size
    inner = max(1.0, height - menu_height - status_height)
    panels = max(LEAST_PANEL, panel_share * width)
    panels = min(panels, max(LEAST_PANEL, width - LEAST_PICTURE), width - 1.0 - BORDER)
    picture = max(1.0, width - panels - BORDER)
    return Layout(
        picture=Region(0.0, menu_height, picture, inner),
        border=Region(picture, menu_height, BORDER, inner),
        panels=Region(picture + BORDER, menu_height, panels, inner),
        status=Region(0.0, menu_height + inner, width, status_height),
    )


def fit_inside(place: tuple[float, float], shape: tuple[int, int]) -> tuple[float, float]:
    """The largest size with the proportions of `shape` that `place` has room for."""
    scale = min(place[0] / shape[0], place[1] / shape[1])
    return shape[0] * scale, shape[1] * scale


def begin_region(name: str, region: Region, *, padding: bool = True) -> bool:
    """Opens a borderless imgui window over the region; close it with `imgui.end`. False where none
    of its contents need to be built."""
    imgui.set_next_window_pos((region.x, region.y))
    imgui.set_next_window_size((region.width, region.height))
    if not padding:
        imgui.push_style_var(imgui.StyleVar_.window_padding, (0.0, 0.0))
    imgui.push_style_var(imgui.StyleVar_.window_min_size, (1.0, 1.0))  # the border is narrow
    imgui.push_style_var(imgui.StyleVar_.window_rounding, 0.0)
    imgui.push_style_var(imgui.StyleVar_.window_border_size, 0.0)
    build, _ = imgui.begin(name, None, _FIXED)
    imgui.pop_style_var(3 if padding else 4)
    return bool(build)


def drag_border(region: Region, window_width: float, share: float) -> float:
    """The border between picture and panels: the panels' new share of the window's width."""
    begin_region("##border", region, padding=False)
    imgui.invisible_button("##drag", (region.width, region.height))
    if imgui.is_item_hovered() or imgui.is_item_active():
        imgui.set_mouse_cursor(imgui.MouseCursor_.resize_ew)
    if imgui.is_item_active():
        share -= imgui.get_io().mouse_delta.x / max(window_width, 1.0)
    if imgui.is_item_hovered() and imgui.is_mouse_double_clicked(imgui.MouseButton_.left):
        share = PANEL_SHARE
    imgui.end()
    return min(max(share, 0.1), 0.8)
