"""The time line: which clip of the scene is shown, at which time, and whether it runs."""

from typing import TYPE_CHECKING

from imgui_bundle import imgui

from engine.scene.pose import ClipSpan, timeline
from engine.view.marks import mark
from engine.view.panels.transport import Transport, draw_transport

if TYPE_CHECKING:
    from treeline.view.session import ViewSession

REST = "as in the file"


class TimeLine:
    """`spans` are the scene's clips; without any there is nothing to draw. It begins in the first
    clip, standing at its start."""

    def __init__(self, session: "ViewSession") -> None:
        self.session = session
        self.spans: tuple[ClipSpan, ...] = timeline(session.scene)
        self.clip: str | None = None
        self.transport = Transport(0.0)
        if self.spans:
            self.choose(self.spans[0].name)

    def __bool__(self) -> bool:
        return bool(self.spans)

    def choose(self, clip: str | None) -> None:
        """Another clip from its start; None: the scene as its file stands."""
        self.clip = clip
        span = next((span for span in self.spans if span.name == clip), None)
        self.transport = Transport(0.0 if span is None else span.duration)

    def toggle(self) -> None:
        self.transport = self.transport.toggled()

    def step(self, frames: int) -> None:
        self.transport = self.transport.stepped(frames)

    def scrub(self, time: float) -> None:
        """To a time in seconds, standing."""
        self.transport = self.transport.scrubbed(time)

    def advance(self, seconds: float) -> None:
        """After `seconds` of the wall clock: tells the session."""
        self.transport = self.transport.advanced(seconds)
        if self.spans:
            self.session.set_pose(self.clip, self.transport.time, self.transport.playing)

    def draw(self) -> None:
        """One line of controls."""
        names: list[str | None] = [span.name for span in self.spans]
        imgui.set_next_item_width(8 * imgui.get_font_size())
        if imgui.begin_combo("##clip", self.clip or REST):
            for name in [*names, None]:
                pressed, _ = imgui.selectable(name or REST, name == self.clip)
                mark(f"clip.{name or REST}")
                if pressed:
                    self.choose(name)
            imgui.end_combo()
        else:
            mark("clip")
        imgui.same_line()
        self.transport = draw_transport("time", self.transport)
