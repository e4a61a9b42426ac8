"""A window (or an offscreen canvas) with a Dear ImGui interface, drawn by wgpu.

The loop is our own: events, the interface built from them, the draw and the present follow each
other without anything in between, and no frame is begun while two are unfinished. What takes long
goes into `work`, after the present. A frame whose interface would be the same is not built
(`engine.view.interface_pace`). Times are milliseconds; sizes are (width, height).
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from engine.gpu.device import Device
from engine.gpu.errors import AdapterError
from engine.view import display
from engine.view.frame_commands import FrameCommands
from engine.view.frame_fence import FrameFence
from engine.view.held_signals import signals_held
from engine.view.interface import LONGEST_STEP_S, Interface
from engine.view.interface_input import INPUT_EVENTS
from engine.view.interface_pace import Between, InterfacePace
from engine.view.latencies import Latencies
from engine.view.window_target import U8, WindowTarget

FRAMES_PER_SECOND = 60.0
MEAN_FRAMES = 60  # that `mean_panel_ms` is of
FRAMES_IN_FLIGHT = 2  # a GPU draws one while the next is built; more would only add latency
HIDDEN_POLL_S = 0.05  # how often a minimised window looks for events
HISTORY = 1000  # frames that `latency_ms` remembers


class Window:
    """A canvas, its presentation and its `interface`; owns no scene.

    `panel_ms` is the host time of the last frame's interface: events, building it in `draw` (or
    what went on instead) and encoding it; `submit_ms` that of submitting it with what `commands`
    was given, without waiting for the GPU. `pace` counts what was built. `seconds` are those of
    the frame that is being drawn. `latency_ms` holds, for every frame that input led to, the time
    from the first event to the present; on a CPU adapter to the end of the drawing too. A window's
    events count from the end of the look before the one that found them, the earliest they can have
    happened.
    """

    def __init__(
        self,
        device: Device,
        size: tuple[int, int],
        title: str,
        *,
        offscreen: bool,
        pixel_ratio: float = 1.0,
        ui_scale: float = 1.0,
    ) -> None:
        """`pixel_ratio` is of an offscreen canvas; a window has its screen's. Raises AdapterError
        (exit code 3) without a display, or where the device cannot present to it."""
        self.offscreen = offscreen
        self.panel_ms = self.submit_ms = self.seconds = 0.0
        self._panel_ms: deque[float] = deque(maxlen=MEAN_FRAMES)
        self.latency_ms = Latencies(HISTORY)
        self.frames = 0
        self.pace = InterfacePace()
        self._unbuilt_s = 0.0  # that have passed since the interface was built
        self._input_since: float | None = None
        self._polled = float("inf")  # when events were last looked for; never yet
        self._last_frame: float | None = None
        self._closed = False
        if offscreen:
            self._canvas = display.offscreen_canvas(size, title, pixel_ratio)
        else:
            self._canvas = display.window_canvas(size, title)
        self._context = self._canvas.get_wgpu_context()

        self.interface = Interface(ui_scale)
        self._canvas.add_event_handler(self._on_event, "*", order=-1000)
        self._open(device)

    def _open(self, device: Device) -> None:
        self.device = device
        self._format = self._configure(device)
        self.interface.open(device, self._format)
        self.commands = FrameCommands(device)
        self._target = WindowTarget(device, self._format)  # offscreen, and for `picture`
        self.pace.refresh()
        # A CPU driver draws on the cores that would build the next frame: nothing to overlap.
        self._fence = FrameFence(device, 0 if device.info.is_cpu else FRAMES_IN_FLIGHT)

    def _configure(self, device: Device) -> str:
        """Lets the canvas present what `device` draws; returns the format to draw in.

        Never an sRGB format: the interface's colours and the pictures it shows are encoded already,
        and are blended as encoded on every platform alike.
        """
        if self.offscreen:
            return "rgba8unorm"
        try:
            preferred = self._context.get_preferred_format(device.wgpu.adapter)
            encoded = preferred.removesuffix("-srgb")
            try:
                self._context.configure(device=device.wgpu, format=encoded)
                return encoded
            except ValueError:
                self._context.configure(device=device.wgpu, format=preferred)
                return preferred
        except Exception as error:
            raise AdapterError(
                f"{device.info.adapter} cannot present to this display ({error}); "
                f"pick another adapter or {display.HEADLESS}"
            ) from error

    @property
    def ui_scale(self) -> float:
        """The size of text and spacing, on top of the screen's pixel ratio."""
        return self.interface.scale

    @ui_scale.setter
    def ui_scale(self, scale: float) -> None:
        self.interface.scale = scale
        self.pace.refresh()

    @property
    def mean_panel_ms(self) -> float:
        """`panel_ms` of the last frames, those that were built and those that were not."""
        return sum(self._panel_ms) / max(1, len(self._panel_ms))

    # ---- sizes ------------------------------------------------------------------------------

    @property
    def logical_size(self) -> tuple[float, float]:
        """The window's content in the units that imgui and events count in."""
        width, height = self._canvas.get_logical_size()
        return float(width), float(height)

    @property
    def pixel_size(self) -> tuple[int, int]:
        width, height = self._canvas.get_physical_size()
        return int(width), int(height)

    @property
    def pixel_ratio(self) -> float:
        return float(self._canvas.get_pixel_ratio())

    def device_pixels(self, logical: tuple[float, float]) -> tuple[int, int]:
        """The pixels that a region of `logical` size covers, at least one by one."""
        return (
            max(1, round(logical[0] * self.pixel_ratio)),
            max(1, round(logical[1] * self.pixel_ratio)),
        )

    def resize(self, width: float, height: float) -> None:
        """Asks for a logical size; a window's system may grant another."""
        self._canvas.set_logical_size(width, height)

    def set_pixel_ratio(self, ratio: float) -> None:
        """As if an offscreen canvas had moved to another screen: the logical size stays."""
        size = self.logical_size
        self._canvas.set_pixel_ratio(ratio)
        self._canvas.set_logical_size(*size)

    @property
    def visible(self) -> bool:
        """False while minimised: there are no pixels to draw then."""
        minimised = getattr(self._canvas, "_is_minimized", False)
        return min(self.pixel_size) > 0 and not minimised

    # ---- input ------------------------------------------------------------------------------

    def _on_event(self, event: dict[str, Any]) -> None:
        if event["event_type"] in INPUT_EVENTS and self._input_since is None:
            since = float(event.get("time_stamp", self._polled))
            self._input_since = since if self.offscreen else min(since, self._polled)
        self.pace.take(event)
        self.interface.feed(event)

    def _process_events(self) -> None:
        # The one private call of rendercanvas that drives a canvas without its scheduler.
        self._canvas._process_events()
        self._polled = time.perf_counter()

    def send(self, event_type: str, **fields: Any) -> None:
        """A synthetic event, seen by the next frame. Pointer events take x, y (logical) and button
        (1 left, 2 right, 3 middle), wheel events dy (100 a notch), key events key, "char" data."""
        event: dict[str, Any] = {"event_type": event_type, "modifiers": ()}
        if event_type.startswith("pointer") or event_type == "wheel":
            event |= {"x": 0.0, "y": 0.0, "button": 0, "buttons": (), "ntouches": 0, "touches": {}}
        if event_type == "wheel":
            event |= {"dx": 0.0, "dy": 0.0}
        self._canvas.submit_event(event | fields)

    # ---- frames -----------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        return bool(self._canvas.get_closed())

    def run(
        self,
        draw: Callable[[], None],
        work: Callable[[], None] | None = None,
        lost: Callable[[AdapterError], None] | None = None,
        between: Between | None = None,
    ) -> None:
        """Until the window is closed: events, `draw` (imgui calls) or `between`, present, `work`.
        `lost` is called after the device was lost, to give the window another; without it that is
        raised."""
        while not self.closed:
            begun = time.perf_counter()
            try:
                self.draw_once(draw, between)
            except AdapterError as error:
                if lost is None:
                    raise
                lost(error)
            if self.closed:
                break
            if work is not None:
                work()
            period = 1.0 / FRAMES_PER_SECOND if self.visible else HIDDEN_POLL_S
            time.sleep(max(0.0, begun + period - time.perf_counter()))

    def draw_once(self, draw: Callable[[], None], between: Between | None = None) -> bool:
        """One frame from the events until now; offscreen, the picture stays on the device. `draw`
        is not called where `between` is given and the interface need not be built. False when
        there was nothing to draw into (closed, minimised, covered). AdapterError where the device
        was lost: `replace_device` goes on."""
        begun = time.perf_counter()
        self._process_events()
        if self.closed or not self.visible:
            self._input_since = None
            return False
        self.seconds = self._seconds_passed(begun)
        replays = self._build(draw, between)
        built = time.perf_counter()
        try:
            # wgpu aborts when a surface is closed whose texture was taken and not presented.
            with nullcontext() if self.offscreen else signals_held():
                encode_ms = self._draw_interface(replays)
        except Exception as error:
            self.pace.refresh()  # what was built has not been uploaded
            if type(error).__name__ == "DrawCancelled":  # covered, or between two sizes
                self.commands.flush()
                return False
            self.commands.drop()
            self._raise_if_lost(error)
            raise
        self.panel_ms = 1e3 * (built - begun) + encode_ms
        self._panel_ms.append(self.panel_ms)
        fenced = time.perf_counter()
        self._fence.submitted()
        self.submit_ms += 1e3 * (time.perf_counter() - fenced) - self._fence.waited_ms
        self.frames += 1
        if self._input_since is not None and not self.pace.hovering:  # which is still to be seen
            self.latency_ms.append(1e3 * (time.perf_counter() - self._input_since))
            self._input_since = None
        return True

    def _build(self, draw: Callable[[], None], between: Between | None) -> bool:
        """The frame's contents; whether the interface is to be drawn as it was built before."""
        self._unbuilt_s += self.seconds
        place = (self.logical_size, self.pixel_ratio)
        replays = self.pace.replays(self.seconds, place, self.interface.busy, between)
        if replays and between is not None:
            between.step(self.seconds, self.pace.pointer)
            return True
        seconds, self._unbuilt_s = self._unbuilt_s, 0.0
        try:
            self.interface.build(draw, *place, seconds)
        except Exception:
            self.pace.refresh()
            raise
        return False

    def _draw_interface(self, replays: bool) -> float:
        """Draws what was built and presents it; the host's time to encode, ms."""
        if self.offscreen:
            target = self._target.view(self.pixel_size)
        else:
            target = self._context.get_current_texture().create_view()
        acquired = time.perf_counter()
        encoder = self.commands.encoder()
        self.interface.encode(encoder, target, again=replays)
        commands = encoder.finish()
        encoded = time.perf_counter()
        self.commands.submit(commands)
        self.submit_ms = 1e3 * (time.perf_counter() - encoded)
        if not self.offscreen:
            self._context._rc_present()
        return 1e3 * (encoded - acquired)

    def _raise_if_lost(self, error: Exception) -> None:
        if "device is lost" in str(error).lower():
            raise AdapterError(
                f"{self.device.info.adapter}: the device was lost: {' '.join(str(error).split())}"
            ) from error

    def _seconds_passed(self, now: float) -> float:
        """Offscreen time goes by frames, so that the same events always give the same picture."""
        last, self._last_frame = self._last_frame, now
        if last is None or self.offscreen:
            return 1.0 / FRAMES_PER_SECOND
        return min(now - last, LONGEST_STEP_S)

    def picture(self) -> U8:
        """[h, w, 3]: the window as last drawn, by drawing the same interface once more into a
        texture of its own."""
        self.commands.flush()
        encoder = self.device.wgpu.create_command_encoder(label="interface")
        self.interface.encode(encoder, self._target.view(self.pixel_size))
        self.device.wgpu.queue.submit([encoder.finish()])
        return self._target.read()

    # ---- images and devices -----------------------------------------------------------------

    def image(self, texture_view: Any) -> Any:
        """imgui's reference to a texture view of this window's device, for `imgui.image`. Kept
        until `forget`."""
        return self.interface.backend.image(texture_view)

    def forget(self, texture_view: Any) -> None:
        self.interface.backend.forget(texture_view)

    def replace_device(self, device: Device) -> None:
        """After a lost device: drops all that was the old one's, images too, and goes on with
        `device`. The interface keeps its state."""
        if not self.offscreen:
            self._context.unconfigure()
        self._open(device)

    def close(self) -> None:
        """Closes the canvas and ends its imgui context. Closing twice is no error."""
        if self._closed:
            return
        self._closed = True
        self._canvas.close()
        self.interface.close()
