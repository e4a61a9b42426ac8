"""Decides in which frames the interface is built; in all others it is drawn as it was built last.

A frame of Dear ImGui costs the host about a millisecond, of which nothing changes while a mouse
turns the camera, or while nobody touches anything. So the interface is built for whatever somebody
does to it, for whatever else it shows, and ten times a second for numbers; between that the picture
below it goes on by itself (`Between`). A mouse that only moves over it changes what is lit up below
it: that follows forty times a second, as the system draws the pointer itself.
"""

import math
from typing import Any, Protocol

from engine.view.interface_input import MODIFIERS
from engine.view.quiet_window import REFRESH_S, ROUNDING_S, SETTLE_FRAMES

HOVER_S = 0.025  # between two builds for a mouse that moves and holds nothing
# Of the canvas itself; a pointer that moves is looked at apart.
_NO_CHANGE = ("pointer_move", "before_draw", "animate")

Point = tuple[float, float]


class Between(Protocol):
    """What a window's contents do in frames in which their interface is not built."""

    @property
    def dragging(self) -> bool:
        """Whether a button is held that no widget has to do with: moves of the mouse go to `step`
        alone."""
        ...

    def changed(self) -> bool:
        """Whether the interface shows anything that is another since this was asked last."""
        ...

    def step(self, seconds: float, pointer: Point | None) -> None:
        """One frame: `seconds` have passed. `pointer` is where events have the mouse, in logical
        pixels as imgui rounds them; None before any."""
        ...


class InterfacePace:
    """`built` and `replayed` count frames. `pointer` is where the newest event had the mouse,
    `hovering` whether it came there since the interface was built, which is to follow it."""

    def __init__(self) -> None:
        self.built = self.replayed = 0
        self.pointer: Point | None = None
        self._moved = self._acted = self.hovering = False  # since the last frame
        self._keys: set[str] = set()  # that are held: imgui repeats them
        self._settling = SETTLE_FRAMES
        self._resting = 0  # frames to be built once the mouse has stopped
        self._waited = 0.0  # seconds since it was built
        self._place: Any = None  # that it was built for

    def take(self, event: dict[str, Any]) -> None:
        """One of the canvas' events."""
        kind = event["event_type"]
        if kind == "pointer_move":
            self._moved = True
            self.pointer = (float(math.floor(event["x"])), float(math.floor(event["y"])))
        self._acted |= kind not in _NO_CHANGE
        if kind == "key_down" and event["key"] not in MODIFIERS:
            self._keys.add(event["key"])
        elif kind == "key_up":
            self._keys.discard(event["key"])

    def refresh(self) -> None:
        """Builds the next frames, whatever else."""
        self._settling = SETTLE_FRAMES

    def replays(self, seconds: float, place: Any, busy: bool, between: Between | None) -> bool:
        """Whether this frame, `seconds` after the last, draws what was built before. `place` is
        the size that the interface has, `busy` whether imgui waits for something; without a
        `between` nothing can go on. To be asked once a frame."""
        self._waited += seconds
        dragging = between is not None and between.dragging
        needed = (
            between is None
            or between.changed()
            or self._acted
            or bool(self._keys)
            or (busy and not dragging)
            or place != self._place
        )
        self.hovering = not dragging and (self.hovering or self._moved)
        self._moved = self._acted = False
        self._place = place
        if needed:
            self._settling, self._resting = SETTLE_FRAMES, 0
        elif self._settling:
            self._settling -= 1
        elif not self._is_due():
            self.replayed += 1
            return True
        self.built += 1
        self._waited, self.hovering = 0.0, False
        return False

    def _is_due(self) -> bool:
        """Whether to build for what comes by itself, or for a mouse that is just passing."""
        due = self._waited >= REFRESH_S - ROUNDING_S
        if self.hovering:
            due |= self._waited >= HOVER_S
            self._resting = SETTLE_FRAMES
        elif self._resting:
            due = True
            self._resting -= 1
        return due
