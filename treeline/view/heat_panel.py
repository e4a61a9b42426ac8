"""Which output is shown, and what its colours mean."""

from typing import TYPE_CHECKING

import numpy as np
from imgui_bundle import imgui

from engine.view.marks import mark
from engine.view.panels.legend import gradient, legend
from passes.outputs import Output, frame_outputs
from passes.palettes import DIVERGING, PALETTES, palette_colours

if TYPE_CHECKING:
    from treeline.view.session import ViewSession
    from treeline.view.view_state import Seen, ViewState

SURFACE, LIGHT = "Surface", "Light"
GREY = np.repeat(np.arange(255, -1, -1, dtype=np.uint8)[:, None], 3, axis=1)  # depth: near is white


class HeatPanel:
    """Outputs are listed because the frame has them."""

    title = "Heat map"

    def __init__(self) -> None:
        self._drawn: Seen | None = None

    def stale(self, session: "ViewSession", state: "ViewState") -> bool:
        return state.seen != self._drawn

    def draw(self, session: "ViewSession", state: "ViewState") -> None:
        self._drawn = state.seen
        outputs = frame_outputs(session.settings.frame)
        shown = next((output for output in outputs if output.name == state.shown), outputs[0])
        if shown.kind == "count":
            _draw_heat(shown, state)
        elif shown.kind == "scalar":
            _draw_range(shown, state, "grey")
        if state.seen.value:
            imgui.text_wrapped(state.seen.value)
        for title, members in grouped(outputs).items():
            imgui.separator_text(title)
            _draw_choice(members, state)
        if not session.settings.frame.count:
            imgui.text_disabled("Counters are off: there are no counts to look at.")


def grouped(outputs: tuple[Output, ...]) -> dict[str, list[Output]]:
    """By what they tell of: the surface, the light of each ray type, the counts of each."""
    groups: dict[str, list[Output]] = {SURFACE: [], LIGHT: []}
    for output in outputs:
        if output.kind == "count":
            groups.setdefault(f"Counts, {output.ray_type} rays", []).append(output)
        else:
            groups[LIGHT if output.ray_type else SURFACE].append(output)
    return groups


def _draw_choice(outputs: list[Output], state: "ViewState") -> None:
    """Buttons in lines as full as the panel is wide."""
    edge = imgui.get_cursor_screen_pos().x + imgui.get_content_region_avail().x
    space = imgui.get_style().item_spacing.x
    padding = 2 * imgui.get_style().frame_padding.x
    for index, output in enumerate(outputs):
        width = imgui.calc_text_size(output.label).x + padding + imgui.get_frame_height()
        if index and imgui.get_item_rect_max().x + space + width < edge:
            imgui.same_line()
        if imgui.radio_button(f"{output.label}##{output.name}", state.shown == output.name):
            state.shown, state.heat_range = output.name, None
        mark(f"heat.{output.name}")


def _draw_heat(output: Output, state: "ViewState") -> None:
    signed = state.difference and state.seen.has_baseline
    _draw_range(output, state, DIVERGING if signed else state.palette)
    for index, name in enumerate(PALETTES):
        _draw_palette(name, state, beside=index % 2 == 1)
    imgui.begin_disabled(not state.seen.has_baseline and not state.difference)
    pressed, on = imgui.checkbox("difference from the baseline", state.difference)
    mark("heat.difference")
    imgui.end_disabled()
    if pressed:
        state.difference, state.heat_range = on, None
    if not state.seen.has_baseline:
        imgui.same_line()
        imgui.text_disabled("(pin one with P)")


def _draw_palette(name: str, state: "ViewState", beside: bool) -> None:
    """A choice with its colours; two of them share a line."""
    em = imgui.get_font_size()
    if beside:
        imgui.same_line(12 * em)
    left = imgui.get_cursor_pos_x()
    if imgui.radio_button(f"{name}##palette", state.palette == name):
        state.palette = name
    mark(f"heat.palette.{name}")
    imgui.same_line(left + 7.5 * em)
    imgui.set_cursor_pos_y(imgui.get_cursor_pos_y() + imgui.get_style().frame_padding.y)
    gradient(palette_colours(name), 3.5 * em, imgui.get_text_line_height())


def _draw_range(output: Output, state: "ViewState", palette: str) -> None:
    """The legend with its range; automatic until it is taken in hand."""
    known = state.seen.range if state.seen.output == output else None
    if known is None:
        imgui.text_disabled("the range is being found")
        return
    imgui.separator_text(output.label)
    low, high = known
    most = max(state.seen.maximum or 0.0, high)
    least = -most if palette == DIVERGING else min(0.0, low)
    colours = GREY if palette == "grey" else palette_colours(palette)
    new = legend(
        "heat.legend",
        colours,
        (low, high),
        (least, most),
        automatic=state.heat_range is None,
        unit=output.unit,
    )
    if new == "auto":
        state.heat_range = None
    elif isinstance(new, tuple):
        state.heat_range = new
