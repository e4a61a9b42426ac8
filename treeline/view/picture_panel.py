"""The picture: one of the frame's outputs at the size of its place, with boxes and rays over it.

The texture is drawn anew only when the frame, the choice, the camera or the lines have changed. It
has the place's size in pixels, so that lines are sharp over a frame that was rendered smaller.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.view.lines import LineBatch, LineRenderer
from engine.view.picture_target import PictureTarget
from engine.view.same import same
from engine.view.window import Window
from passes.display import DisplayPass, Value, has_range
from passes.frame_uniforms import FRAME_UNIFORMS
from passes.hybrid import HybridFrame
from passes.outputs import Output
from treeline.pictures import U8, add_legend, output_legend
from treeline.view.view_state import Seen, ViewState

if TYPE_CHECKING:
    from treeline.view.session import ViewSession

assert FRAME_UNIFORMS.offsets["view_projection"] == 0, "lines are seen from there (EYE)"
SIZES = 2  # of frames that displays are kept for: the full one and the small one


class Picture:
    """What is shown. `output` is the one that the frame had for what the state asks; `frame` the
    one it came from. None before the first frame."""

    def __init__(self, device: Device, window: Window) -> None:
        self.device = device
        self.window = window
        self.target = PictureTarget(device, (1, 1))
        self.lines = LineRenderer(device)
        self.output: Output | None = None
        self.frame: HybridFrame | None = None
        self.value = ""  # under the cursor: the output's name and the value with its unit
        self.drawn = 0  # pictures encoded so far
        self.host_ms = 0.0  # that the last frame's lines and picture took to encode
        self._displays: dict[tuple[int, int], DisplayPass] = {}
        self._seen: tuple[Any, ...] = ()  # what the texture shows
        self._asked: tuple[Any, ...] = ()  # what `_choose` was to choose of
        self._baseline: Any = None
        self._cursor: tuple[int, int] | None = None
        self._size = (0, 0)  # of the session's pictures
        self._kept: dict[str, Any] = {}  # a baseline's planes by the output's name

    def display(self, frame: HybridFrame) -> DisplayPass:
        """The display pass of the frame's size."""
        size = (frame.data.width, frame.data.height)
        if size not in self._displays:
            while len(self._displays) >= SIZES:
                self._displays.pop(next(iter(self._displays)))
            self._displays[size] = DisplayPass(self.device, *size)
        return self._displays[size]

    def resize(self, size: tuple[int, int]) -> None:
        """The size of the place on the screen in pixels."""
        if size != self.target.size:
            self.window.forget(self.target.view)
            self.target.resize(size)
            self._seen = ()

    def keep_planes(self, session: "ViewSession") -> None:
        """Copies every count of the counted frame, for differences against it. Without a counted
        frame there are none."""
        self._kept = {}
        frame = session.frame_for(counts=True)
        if frame is not None:
            display = self.display(frame)
            self._kept = {
                output.name: display.keep(frame, output.name)
                for output in frame.outputs()
                if output.kind == "count"
            }

    def forget_planes(self) -> None:
        """Lets go of what `keep_planes` copied."""
        self._kept = {}

    def baseline_plane(self, frame: HybridFrame, output: Output) -> Any:
        """The kept plane of a count, None where there is none of this size."""
        kept = self._kept.get(output.name)
        if kept is not None and not self.display(frame).fits_baseline(frame, output.name, kept):
            return None
        return kept

    def pixels(self, state: ViewState) -> U8:
        """[h, w, 3] the output as it is shown, without lines; a heat map with its legend. Waits."""
        if self.frame is None or self.output is None:
            raise UserError("there is no picture yet")
        display, output = self.display(self.frame), self.output
        self.window.commands.flush()
        pixels = display.read_picture()
        if output.kind != "count":
            return pixels
        signed = state.difference and output.name in self._kept
        found = state.heat_range or display.auto_range(output.name, difference=signed)
        maximum = display.maximum(output.name, difference=signed)
        legend = output_legend(
            output, found or (0.0, 1.0), state.palette, maximum, difference=signed
        )
        return add_legend(pixels, legend)

    def update(
        self, session: "ViewSession", state: ViewState, batches: Sequence[LineBatch], lines: Any
    ) -> None:
        """Encodes what has changed since the last call, to be submitted with the window's frame.
        `lines` says which lines the batches are: anything that compares."""
        if not self._is_as_before(session, state, lines) and not self._choose(session, state):
            return
        frame, output = self.frame, self.output
        assert frame is not None and output is not None
        display, baseline = self.display(frame), self._baseline
        seen = (
            frame,
            session.version,
            output.name,
            state.palette,
            state.heat_range,
            baseline,
            self._cursor,
            session.camera,
            lines,
        )
        if same(seen, self._seen):
            return
        self._seen = seen
        encoder = self.window.commands.encoder()
        display.encode(
            encoder,
            frame,
            output.name,
            state.palette,
            state.heat_range if output.kind in ("count", "scalar") else None,
            baseline,
            cursor=self._cursor,
        )
        resources = frame.data.resources
        # Where every picture is drawn at once, lines are seen from where it was. A CPU driver's
        # follows later: there lines go with the hand.
        eye = resources["frame"] if session.continuous else None

        def draw_lines(scope: Any) -> None:
            size, depth = self.target.size, resources["depth"]
            self.lines.draw(scope, size, session.camera, batches, depth, eye=eye)

        smooth = output.kind in ("colour", "vector")
        self.target.blit(encoder, display.view, smooth=smooth, over=draw_lines)
        self.window.commands.when_submitted(display.submitted)
        self.drawn += 1

    def _is_as_before(self, session: "ViewSession", state: ViewState, lines: Any) -> bool:
        """Whether nothing but frames has come since `_choose`, and nothing is to come of them."""
        asked = (
            session.frame,
            session.frame_for(counts=True),
            session.size,
            state.shown,
            state.palette,
            state.heat_range,
            state.difference,
            state.cursor,
            lines,
            self._kept,
        )
        before, self._asked = self._asked, asked
        waits = self._cursor is not None or self.output is None or has_range(self.output)
        return not waits and same(asked, before)

    def _choose(self, session: "ViewSession", state: ViewState) -> bool:
        """Finds out what is to be shown and what is known of it; False before there is anything."""
        chosen = choose_output(session, state.shown)
        if chosen is None:
            return False
        frame, output = chosen
        self.frame, self.output, self._size = frame, output, session.size
        display = self.display(frame)
        self._cursor = frame_pixel(frame, session, state)
        kept = self.baseline_plane(frame, output)
        self._baseline = kept if state.difference else None
        known, maximum, value = display.seen(output.name, difference=self._baseline is not None)
        self.value = self._value_text(value)
        state.seen = Seen(output, state.heat_range or known, maximum, self.value, kept is not None)
        return True

    def _value_text(self, found: Value | None) -> str:
        if self.frame is None or self.output is None:
            return ""
        if found is None or found.output != self.output.name or self._cursor is None:
            return ""
        text = f"{self.output.label}: {found.text}"
        # Of a small frame, a pixel is none that could be picked or found again.
        size = (self.frame.data.width, self.frame.data.height)
        return f"({found.pixel[0]}, {found.pixel[1]}) {text}" if size == self._size else text


def choose_output(session: "ViewSession", name: str) -> tuple[HybridFrame, Output] | None:
    """The frame that has the output, and the output. The picture where no frame has it now: counts
    are known only at rest on a CPU adapter, and the frame that is shown may be older than the
    settings. None before the first frame."""
    shown, counted = session.frame, session.frame_for(counts=True)
    if shown is None:
        return None
    for frame, counts in ((shown, False), (counted, True)):
        if frame is None:
            continue
        for output in frame.outputs():
            if output.name == name and (output.kind == "count") == counts:
                return frame, output
    return shown, next(output for output in shown.outputs() if output.name == "picture")


def frame_pixel(
    frame: HybridFrame, session: "ViewSession", state: ViewState
) -> tuple[int, int] | None:
    """The pixel of `frame` under the cursor, which counts in pixels of the full size."""
    if state.cursor is None:
        return None
    width, height = session.size
    x = state.cursor[0] * frame.data.width // max(width, 1)
    y = state.cursor[1] * frame.data.height // max(height, 1)
    if not (0 <= x < frame.data.width and 0 <= y < frame.data.height):
        return None
    return x, y
