"""The time line: which clip of the scene is shown, at which time, whether it runs, and whether the
camera follows the scene's path by it.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from imgui_bundle import imgui

from engine.gpu.errors import UserError
from engine.scene.camera import Camera
from engine.scene.pose import ClipSpan, timeline
from engine.view.marks import mark
from engine.view.panels.transport import Transport, draw_transport

if TYPE_CHECKING:
    from treeline.view.session import ViewSession

REST = "as in the file"


class TimeLine:
    """`spans` are the scene's clips, `path` its camera path, if any; without either there is
    nothing to draw. It begins with the scene as its file stands, the frame that `treeline report`
    measures; whatever makes time pass enters the first clip."""

    def __init__(self, session: "ViewSession") -> None:
        self.session = session
        self.spans: tuple[ClipSpan, ...] = timeline(session.scene)
        self.path = session.scene.camera_path
        self.follows_path = False
        self.clip: str | None = None
        self.transport = Transport(self.spans[0].duration if self.spans else 0.0)
        self._entered = not self.spans

    def __bool__(self) -> bool:
        return bool(self.spans) or self.path is not None

    def choose(self, clip: str | None) -> None:
        """Another clip from its start; None: the scene as its file stands."""
        self.clip, self._entered = clip, True
        self.transport = Transport(self._duration())

    def _enter(self) -> None:
        """Into the first clip, unless one was chosen."""
        if not self._entered:
            self.choose(self.spans[0].name)

    def _duration(self) -> float:
        """The clip's; on the camera path the longer one's, as the other one begins again."""
        span = next((span for span in self.spans if span.name == self.clip), None)
        longest = 0.0 if span is None else span.duration
        if self.path is not None and self.follows_path:
            longest = max(longest, self.path.duration)
        return longest

    def follow_path(self, follows: bool) -> None:
        """The camera goes along the path, or is free again; the time stays. UserError for a scene
        without a path."""
        if follows and self.path is None:
            raise UserError(f"{self.session.scene.name} has no camera path")
        if follows:
            self._enter()
        self.follows_path = follows
        duration = self._duration()
        time = min(self.transport.time, duration)
        self.transport = replace(self.transport, duration=duration, time=time)

    def camera(self) -> Camera | None:
        """On the path, at the time that is shown; None where the camera is free."""
        if self.path is None or not self.follows_path:
            return None
        time = self.transport.time
        if self.path.duration > 0 and time > self.path.duration:
            time %= self.path.duration
        return self.path.at(float(self.path.times[0]) + time)

    def toggle(self) -> None:
        self._enter()
        self.transport = self.transport.toggled()

    def step(self, frames: int) -> None:
        self._enter()
        self.transport = self.transport.stepped(frames)

    def scrub(self, time: float) -> None:
        """To a time in seconds, standing."""
        self._enter()
        self.transport = self.transport.scrubbed(time)

    def advance(self, seconds: float) -> None:
        """After `seconds` of the wall clock: tells the session."""
        self.transport = self.transport.advanced(seconds)
        if self.spans:
            self.session.set_pose(self.clip, self.transport.time, self.transport.playing)

    def draw(self) -> None:
        """One line of controls."""
        names: list[str | None] = [span.name for span in self.spans]
        if self.path is not None:
            changed, follows = imgui.checkbox("path", self.follows_path)
            mark("time.path")
            imgui.set_item_tooltip("The camera goes along the scene's path")
            if changed:
                self.follow_path(follows)
            imgui.same_line()
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
        moved = draw_transport("time", self.transport)
        if moved is not self.transport:
            self._enter()
            self.transport = moved
