"""A Dear ImGui context with plots, its style, and its drawing into any texture of one device."""

import math
from collections.abc import Callable
from typing import Any

from imgui_bundle import imgui, implot

from engine.gpu.device import Device
from engine.gpu.render_scope import RenderPasses
from engine.view import interface_input, marks, theme
from engine.view.interface_backend import InterfaceBackend

BACKGROUND = (0.055, 0.06, 0.07, 1.0)
LONGEST_STEP_S = 1.0  # what a frame may tell imgui has passed


class Interface:
    """State that outlives devices (`open` and `open` again), and several may live side by side.
    Writes no files."""

    def __init__(self, scale: float) -> None:
        self._imgui: Any = imgui.create_context()
        imgui.set_current_context(self._imgui)
        self._io = imgui.get_io()
        self._io.set_ini_filename("")
        self._io.set_log_filename("")
        self._implot: Any = implot.create_context()
        theme.load_fonts()
        self.backend: Any = None
        self._passes = RenderPasses("interface", clear=BACKGROUND)
        self._device: Any = None
        self._held: list[dict[str, Any]] = []  # for the next frame
        self._queued = False  # whether imgui left events for the next frame, as it does with clicks
        self.scale = scale

    def open(self, device: Device, target_format: str) -> None:
        """Draws on `device` from now on; all textures of the one before are dropped."""
        self._make_current()
        if self.backend is not None:
            self.backend.release_textures()
        self._device = device.wgpu
        self.backend = InterfaceBackend(device, target_format)

    def _make_current(self) -> None:
        imgui.set_current_context(self._imgui)
        implot.set_current_context(self._implot)

    @property
    def scale(self) -> float:
        """The size of text and spacing, on top of the pixel ratio."""
        return self._scale

    @scale.setter
    def scale(self, scale: float) -> None:
        self._scale = scale
        self._make_current()
        theme.apply(scale)

    def feed(self, event: dict[str, Any]) -> None:
        """Takes one of the canvas' events. A button that goes down where the mouse was not in the
        last frame waits for the next one, and all that follows with it: tabs and rows are clicked
        only where they were hovered before, and of slow frames people are faster."""
        if self._held:
            self._held.append(event)
            return
        if event["event_type"] == "pointer_down" and not self._is_mouse_at(event["x"], event["y"]):
            interface_input.feed(self._io, {**event, "event_type": "pointer_move"})
            self._held.append(event)
            return
        interface_input.feed(self._io, event)

    def _is_mouse_at(self, x: float, y: float) -> bool:
        """Whether the last frame that was built saw it there."""
        return (self._io.mouse_pos.x, self._io.mouse_pos.y) == (math.floor(x), math.floor(y))

    @property
    def busy(self) -> bool:
        """Whether the next frame has to be built for imgui's own sake: a widget is held, text is
        typed, something popped up, or events wait for a frame of their own."""
        self._make_current()
        return bool(
            self._held
            or self._queued
            or imgui.is_any_item_active()
            or self._io.want_text_input
            or imgui.is_popup_open("", imgui.PopupFlags_.any_popup)
        )

    def _feed_held(self) -> None:
        held, self._held = self._held, []
        for event in held:
            self.feed(event)

    def build(
        self,
        draw: Callable[[], None],
        size: tuple[float, float],
        pixel_ratio: float,
        seconds: float,
    ) -> None:
        """Calls `draw`, which makes the interface with imgui calls, for a display of `size` logical
        pixels; `seconds` have passed since the last frame. After an error in `draw` the next frame
        can be built all the same."""
        self._make_current()
        self._io.display_size = imgui.ImVec2(*size)
        self._io.display_framebuffer_scale = imgui.ImVec2(pixel_ratio, pixel_ratio)
        self._io.delta_time = min(max(seconds, 1e-5), LONGEST_STEP_S)
        marks.rectangles.clear()
        imgui.new_frame()
        self._queued = self._imgui.input_events_queue.size() > 0
        self._feed_held()
        try:
            draw()
        except Exception:
            self._abandon_frame()
            raise
        imgui.render()

    def _abandon_frame(self) -> None:
        """Ends whatever an interrupted `draw` had begun."""
        self._io.config_error_recovery_enable_assert = False
        self._io.config_error_recovery_enable_debug_log = False
        imgui.render()
        self._io.config_error_recovery_enable_assert = True
        self._io.config_error_recovery_enable_debug_log = True
        # A plot that was begun cannot be told from outside; a new context has none.
        implot.destroy_context(self._implot)
        self._implot = implot.create_context()
        theme.apply(self._scale)

    def encode(self, encoder: Any, target: Any, *, again: bool = False) -> None:
        """Draws what was built last into `target`, a texture view. `again`: it has been drawn
        before, and is on the device."""
        render_pass = self._passes.begin(encoder, target)
        if again:
            self.backend.render_again(render_pass)
        else:
            self._make_current()
            self.backend.render(imgui.get_draw_data(), render_pass)
        render_pass.end()

    def close(self) -> None:
        self._make_current()
        if self.backend is not None:
            self.backend.release_textures()
        implot.destroy_context(self._implot)
        imgui.destroy_context(self._imgui)
