"""Named series over the last frames, stacked: how a total came about and how it moved."""

from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np
from imgui_bundle import imgui, implot

from engine.view import theme
from engine.view.marks import mark
from engine.view.panels.colours import series_colour

LABEL_GAP = 12.0  # pixels between labels of lines that are too close for one above the other


def nice_ceiling(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 5, 7 times a power of ten: an axis that seldom changes."""
    if not 0 < value < np.inf:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
    return float(next(step for step in steps if step * power >= value * (1 - 1e-9)) * power)


def draw_history(
    name: str,
    series: Mapping[str, Sequence[float]],
    *,
    unit: str = "ms",
    budgets: Mapping[str, float] | None = None,
    frames: int = 240,
    size: tuple[float, float] = (0.0, 160.0),
) -> None:
    """Stacked areas, oldest frame at the left, the first series lowest; lines at `budgets`. Behind
    the plot stands the legend with the newest values, the last series first as in the stack; where
    that would leave the plot less than half the width, the names alone stand below it. Missing
    values (NaN) count as nothing. Series are aligned at their newest value."""
    names = list(series)
    stack = np.zeros((len(names) + 1, frames))
    for index, key in enumerate(names):
        values = np.asarray(series[key], np.float64)[-frames:]
        if len(values):
            stack[index + 1, frames - len(values) :] = values
    stack = np.cumsum(np.nan_to_num(stack), 0)
    top = max([float(stack[-1].max()), *(budgets or {}).values()])
    newest = {key: _newest(values, unit) for key, values in series.items()}
    legend_width = _legend_width(newest, unit)
    width = size[0] or imgui.get_content_region_avail().x
    beside = legend_width < 0.5 * width
    plot = (width - legend_width * beside, size[1])
    _draw_plot(name, names, stack, nice_ceiling(1.05 * top), budgets or {}, plot)
    if beside:
        imgui.same_line()
        _draw_legend(name, newest, size[1])
    else:
        _draw_names(names, width)


def _draw_plot(
    name: str,
    names: Sequence[str],
    stack: np.ndarray,
    top: float,
    budgets: Mapping[str, float],
    size: tuple[float, float],
) -> None:
    flags = implot.Flags_.canvas_only | implot.Flags_.no_inputs | implot.Flags_.no_frame
    if not implot.begin_plot(f"##{name}", imgui.ImVec2(*size), flags):
        return
    axis = implot.AxisFlags_
    quiet = axis.no_tick_labels | axis.no_tick_marks | axis.no_grid_lines | axis.no_highlight
    implot.setup_axes("", "", quiet, axis.no_highlight)
    frames = stack.shape[1]
    implot.setup_axes_limits(0, frames - 1, 0, top, implot.Cond_.always)
    xs = np.arange(frames, dtype=np.float64)
    for index, key in enumerate(names):
        spec = implot.Spec()
        spec.fill_color = imgui.ImVec4(*theme.opaque(series_colour(key)))
        spec.fill_alpha = 1.0
        implot.plot_shaded(key, xs, stack[index], stack[index + 1], spec)
    widths = {label: imgui.calc_text_size(label).x for label in budgets}
    moved = label_offsets(
        budgets, widths, top * imgui.get_text_line_height() / implot.get_plot_size().y
    )
    for label, value in budgets.items():
        spec = implot.Spec()
        spec.line_color = imgui.ImVec4(*theme.opaque(theme.WARNING))
        spec.flags = implot.InfLinesFlags_.horizontal
        implot.plot_inf_lines(f"##{label}", np.array([float(value)]), spec)
        implot.annotation(
            frames - 1,
            float(value),
            imgui.ImVec4(0, 0, 0, 0),
            imgui.ImVec2(-4 - moved[label], -2),
            True,
            label,
        )
    implot.end_plot()
    mark(name)


def label_offsets(
    lines: Mapping[str, float], widths: Mapping[str, float], least: float
) -> dict[str, float]:
    """Label -> pixels to the left of the plot's end: 0, or where its line is less than `least`
    above the one below, beyond that one's label."""
    offsets: dict[str, float] = {}
    below, taken = -np.inf, 0.0
    for label, value in sorted(lines.items(), key=lambda line: line[1]):
        offsets[label] = taken if value - below < least else 0.0
        below, taken = value, offsets[label] + widths[label] + LABEL_GAP
    return offsets


def _newest(values: Sequence[float], unit: str) -> str:
    known = len(values) and isfinite(values[-1])
    return f"{values[-1]:.2f} {unit}" if known else f"- {unit}"


def _legend_width(newest: Mapping[str, str], unit: str) -> float:
    widest = max((imgui.calc_text_size(name).x for name in newest), default=0.0)
    number = max((imgui.calc_text_size(text).x for text in newest.values()), default=0.0)
    number = max(number, imgui.calc_text_size(f"000.00 {unit}").x)
    style = imgui.get_style()
    return widest + number + imgui.get_font_size() + 4 * style.item_spacing.x + style.scrollbar_size


def _draw_legend(name: str, newest: Mapping[str, str], height: float) -> None:
    imgui.begin_child(f"##{name}.legend", imgui.ImVec2(0, height))
    edge = imgui.get_content_region_avail().x
    for key, value in reversed(list(newest.items())):
        _draw_key(key)
        imgui.same_line(max(0.0, edge - imgui.calc_text_size(value).x))
        imgui.text_unformatted(value)
    imgui.end_child()


def _draw_names(names: Sequence[str], width: float) -> None:
    """The key in lines as full as there is room."""
    used = 0.0
    for key in names:
        needed = imgui.calc_text_size(key).x + 2 * imgui.get_font_size()
        if used and used + needed <= width:
            imgui.same_line(used)
        else:
            used = 0.0
        _draw_key(key)
        used += needed


def _draw_key(key: str) -> None:
    """A series' colour and name."""
    side = imgui.get_font_size() * 0.6
    corner = imgui.get_cursor_screen_pos()
    y = corner.y + 0.5 * (imgui.get_text_line_height() - side)
    imgui.get_window_draw_list().add_rect_filled(
        imgui.ImVec2(corner.x, y),
        imgui.ImVec2(corner.x + side, y + side),
        imgui.get_color_u32(theme.opaque(series_colour(key))),
    )
    imgui.set_cursor_pos_x(imgui.get_cursor_pos_x() + side + 5)
    imgui.text_unformatted(key)
