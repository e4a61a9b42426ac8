"""Widgets for options that are declared elsewhere: whatever is declared gets a control."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark
from engine.view.panels.rows import rows_in_sight

BITS = 8


class Declared(Protocol):
    """An option: `kind` is "choice" (of `choices`), "number" (`low` to `high`; a whole number where
    `step` is one), "flag", or "bits" (eight of them in a number)."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def help(self) -> str: ...
    @property
    def choices(self) -> Sequence[Any]: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def step(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside an option's widget: `text`, and `tip` where that is pointed at. The label
    of a `changed` one is lit up, that of one that is `off`, which has no effect now, is dim."""

    text: str = ""
    tip: str = ""
    changed: bool = False
    off: bool = False


NOTHING = Beside()


def label_width(options: Sequence[Declared]) -> float:
    """That has room for every option's label; in the font of now."""
    return max((imgui.calc_text_size(option.label).x for option in options), default=0.0)


def draw_options(
    name: str,
    options: Sequence[Declared],
    value_of: Callable[[Any], Any],
    beside: Mapping[str, Beside] | None = None,
    labels: float | None = None,
) -> tuple[Any, Any] | None:
    """A row per option: label, widget, and what is `beside` it by its name. Rows that are scrolled
    out of sight are not drawn. `labels` is the labels' width, the same for tables that are to stand
    in line. Returns (option, new value) when the user changed one in this frame."""
    changed: tuple[Any, Any] | None = None
    columns = 3 if beside else 2
    flags = imgui.TableFlags_.sizing_stretch_prop | imgui.TableFlags_.no_saved_settings
    if not imgui.begin_table(f"##{name}", columns, flags):
        return None
    fixed, stretch = imgui.TableColumnFlags_.width_fixed, imgui.TableColumnFlags_.width_stretch
    widest = label_width(options) if labels is None else labels
    imgui.table_setup_column("option", fixed, widest)
    imgui.table_setup_column("value", stretch, 1.1)
    if beside:
        imgui.table_setup_column("effect", stretch, 1.0)
    height = imgui.get_frame_height() + 2 * imgui.get_style().cell_padding.y
    for place in rows_in_sight(len(options), height):
        option = options[place]
        there = (beside or {}).get(option.name, NOTHING)
        imgui.table_next_row()
        imgui.table_next_column()
        _draw_label(option, there)
        imgui.table_next_column()
        imgui.set_next_item_width(-1.0)
        value = value_of(option)
        new = option_widget(f"{name}.{option.name}", option, value)
        if new is not None and new != value:
            changed = option, new
        if beside:
            imgui.table_next_column()
            _draw_beside(there)
    imgui.end_table()
    return changed


def _draw_label(option: Declared, there: Beside) -> None:
    imgui.align_text_to_frame_padding()
    if there.off or there.changed:
        colour = theme.DIM if there.off else theme.ACCENT_TEXT
        imgui.text_colored(theme.opaque(colour), option.label)
    else:
        imgui.text_unformatted(option.label)
    if option.help:
        imgui.set_item_tooltip(option.help)


def _draw_beside(there: Beside) -> None:
    if there.text:
        imgui.align_text_to_frame_padding()
        imgui.text_disabled(there.text)
        if there.tip:
            imgui.set_item_tooltip(there.tip)


def option_widget(name: str, option: Declared, value: Any) -> Any:
    """One option's widget at the cursor, marked `name`; its new value when changed, else None."""
    if option.kind == "choice":
        return _choice(name, option, value)
    if option.kind == "flag":
        pressed, on = imgui.checkbox(f"##{name}", bool(value))
        mark(name)
        return on if pressed else None
    if option.kind == "bits":
        return _bits(name, int(value))
    if option.kind == "number":
        return _number(name, option, value)
    raise ValueError(f"'{option.name}' is a {option.kind}, which has no widget")


def _choice(name: str, option: Declared, value: Any) -> Any:
    chosen = None
    opened = imgui.begin_combo(f"##{name}", str(value))
    # In an open list the item drawn last is the list's window.
    if not opened:
        mark(name)
    if opened:
        for choice in option.choices:
            pressed, _ = imgui.selectable(str(choice), choice == value)
            mark(f"{name}.{choice}")
            if pressed:
                chosen = choice
        imgui.end_combo()
    return chosen


def _number(name: str, option: Declared, value: Any) -> Any:
    clamp = imgui.SliderFlags_.always_clamp
    if option.step >= 1:
        changed, whole = imgui.slider_int(
            f"##{name}", int(value), int(option.low), int(option.high), "%d", clamp
        )
        mark(name)
        return whole if changed else None
    # A range over decades is only usable on a logarithmic scale.
    logarithmic = option.low > 0 and option.high / option.low >= 100
    flags = clamp | (imgui.SliderFlags_.logarithmic if logarithmic else imgui.SliderFlags_.none)
    changed, real = imgui.slider_float(
        f"##{name}", float(value), option.low, option.high, "%.3g", flags
    )
    mark(name)
    if not changed:
        return None
    stepped = option.low + round((real - option.low) / option.step) * option.step
    return min(max(round(stepped, 9), option.low), option.high)


def _bits(name: str, value: int) -> int | None:
    """Eight small buttons, the highest bit first."""
    changed = None
    side = imgui.get_frame_height()
    width = min(side, (imgui.get_content_region_avail().x - (BITS - 1) * 2) / BITS)
    imgui.push_style_var(imgui.StyleVar_.frame_padding, imgui.ImVec2(0, 0))
    for bit in reversed(range(BITS)):
        on = bool(value >> bit & 1)
        colour = theme.opaque(theme.ACCENT if on else theme.FIELD)
        imgui.push_style_color(imgui.Col_.button, colour)
        if imgui.button(f"{int(on)}##{name}.{bit}", imgui.ImVec2(width, side)):
            changed = value ^ 1 << bit
        imgui.pop_style_color()
        mark(f"{name}.{bit}")
        imgui.set_item_tooltip(f"bit {bit}")
        if bit:
            imgui.same_line(0.0, 2.0)
    imgui.pop_style_var()
    return changed
