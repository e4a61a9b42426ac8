"""A time line: play, pause, step, scrub."""

from dataclasses import dataclass, replace

from imgui_bundle import imgui

from engine.view.marks import mark

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Transport:
    """`time` in [0, duration] seconds; playing goes round. `step` is one frame's seconds."""

    duration: float
    time: float = 0.0
    playing: bool = False
    speed: float = 1.0
    step: float = 1.0 / 30.0

    def advanced(self, seconds: float) -> "Transport":
        """After `seconds` of the wall clock."""
        if not self.playing or self.duration <= 0:
            return self
        return replace(self, time=(self.time + seconds * self.speed) % self.duration)

    def stepped(self, frames: int) -> "Transport":
        """`frames` steps on, round the ends; stops playing."""
        if self.duration <= 0:
            return replace(self, playing=False)
        return replace(self, playing=False, time=(self.time + frames * self.step) % self.duration)

    def scrubbed(self, time: float) -> "Transport":
        """At a time that the user pointed at; stops playing."""
        return replace(self, playing=False, time=min(max(time, 0.0), self.duration))

    def toggled(self) -> "Transport":
        return replace(self, playing=not self.playing)


def draw_transport(name: str, state: Transport) -> Transport:
    """Draws one line of controls; returns the state after the user's input (not after time)."""
    imgui.begin_disabled(state.duration <= 0)
    # As wide as the longer word, so that the rest does not jump.
    wide = imgui.calc_text_size("Pause").x + 2 * imgui.get_style().frame_padding.x
    if imgui.button(f"{'Pause' if state.playing else 'Play'}###{name}", imgui.ImVec2(wide, 0)):
        state = state.toggled()
    mark(f"{name}.play")
    for frames, label, what in ((-1, "<", "back"), (1, ">", "on")):
        imgui.same_line(0.0, 2.0)
        imgui.push_item_flag(imgui.ItemFlags_.button_repeat, True)
        if imgui.button(f"{label}##{name}"):
            state = state.stepped(frames)
        imgui.pop_item_flag()
        mark(f"{name}.{what}")
        imgui.set_item_tooltip(f"One frame {what}")
    imgui.same_line()
    speed_width = imgui.get_font_size() * 4.2
    width = max(40.0, imgui.get_content_region_avail().x - speed_width - imgui.get_font_size())
    imgui.set_next_item_width(width)
    shown = f"%.2f / {state.duration:.2f} s"
    if imgui.calc_text_size(shown).x > width:
        shown = "%.2f"
    changed, time = imgui.slider_float(
        f"##{name}.time",
        state.time,
        0.0,
        max(state.duration, 1e-6),
        shown,
        imgui.SliderFlags_.always_clamp,
    )
    mark(f"{name}.time")
    if changed:
        state = state.scrubbed(time)
    imgui.same_line()
    imgui.set_next_item_width(speed_width)
    if imgui.begin_combo(f"##{name}.speed", f"x {state.speed:g}"):
        for speed in SPEEDS:
            pressed, _ = imgui.selectable(f"x {speed:g}", speed == state.speed)
            mark(f"{name}.speed.{speed:g}")
            if pressed:
                state = replace(state, speed=speed)
        imgui.end_combo()
    else:
        mark(f"{name}.speed")
    imgui.end_disabled()
    return state
