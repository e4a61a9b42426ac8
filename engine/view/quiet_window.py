"""A window of the interface that is built only when it may have changed.

A panel's widgets cost the host 0.3 to 1 ms to build, and numbers that change 60 times a second
cannot be read. So its contents are built while somebody is about to use them, in the frame in which
what they show has become another, and else ten times a second at most, where numbers that come by
themselves are newer than those they show; in all other frames imgui draws what was built last (its
experimental refresh policy, which keeps a window's draw lists).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from imgui_bundle import imgui

from engine.view import marks
from engine.view.same import same

REFRESH_S = 0.1
ROUNDING_S = 1e-4  # of a sum of frames' times
SETTLE_FRAMES = 3  # that are built after a change: widgets find their sizes from frame to frame
NEVER = float("-inf")
# What a focused widget answers to while no text is typed.
_KEYS = (
    imgui.Key.up_arrow,
    imgui.Key.down_arrow,
    imgui.Key.left_arrow,
    imgui.Key.right_arrow,
    imgui.Key.enter,
    imgui.Key.space,
    imgui.Key.escape,
)

Point = tuple[float, float]


class QuietWindow:
    """One window. `built` counts the frames that its contents were built in. `stale`, asked ten
    times a second, says whether it shows numbers that are old by now; a mouse that is over it has
    it built as often."""

    def __init__(self, stale: Callable[[], bool] = lambda: True) -> None:
        self.built = 0
        self._stale = stale
        self._asked_at = NEVER  # imgui's time
        self._mouse = (0.0, 0.0)
        self._shown: tuple[Any, ...] = ()
        self._settling = 0
        self._asking = 0  # for next frames; a mouse that only passes asks for none
        self._touched = False  # by the mouse, or by a button that went down over it
        self._focused = False
        self._marks: dict[str, marks.Rectangle] = {}

    @property
    def settling(self) -> bool:
        """Whether it asks for the next frame, for a change: a mouse that only moves over it is
        followed at the pace of whoever makes the frames."""
        return self._asking > 0

    def refresh(self) -> None:
        """Builds it in the next frame, whatever else."""
        self._settling = self._asking = SETTLE_FRAMES

    @contextmanager
    def window(
        self, begin: Callable[[], bool], corner: Point, size: Point, shown: tuple[Any, ...]
    ) -> Iterator[bool]:
        """`begin` opens the window, which lies at `corner` of `size`; whoever uses this closes it.
        Gives whether to build the contents. `shown` is what the contents are of, but for the
        numbers that change with every frame: compared by `same`."""
        if not self._may_have_changed(corner, size, shown):
            imgui.internal.set_next_window_refresh_policy(
                int(imgui.internal.WindowRefreshFlags_.try_to_avoid_refresh)
            )
        before = len(marks.rectangles)
        build = begin()
        if build:
            self._focused = imgui.is_window_focused(imgui.FocusedFlags_.root_and_child_windows)
        yield build
        if build:
            self.built += 1
            self._asked_at = imgui.get_time()
            self._marks = dict(islice(marks.rectangles.items(), before, None))
        else:
            marks.rectangles.update(self._marks)

    def _may_have_changed(self, corner: Point, size: Point, shown: tuple[Any, ...]) -> bool:
        # Draw lists hold places in the glyphs' texture, which imgui replaces as it grows.
        seen = (corner, size, imgui.get_io().fonts.tex_next_unique_id, *shown)
        changed = not same(seen, self._shown)
        self._shown = seen
        used, passed = self._in_use(corner, size)
        if used or changed:
            self._asking = SETTLE_FRAMES
        elif self._asking:
            self._asking -= 1
        if used or changed or passed:
            self._settling = SETTLE_FRAMES
        elif self._settling:
            self._settling -= 1
        # A tip that hangs over it is part of it: wherever it rests, what is built is built whole.
        return self._settling > 0 or self._touched or self._is_due()

    def _is_due(self) -> bool:
        now = imgui.get_time()
        if now - self._asked_at < REFRESH_S - ROUNDING_S:
            return False
        self._asked_at = now
        return self._stale()

    def _in_use(self, corner: Point, size: Point) -> tuple[bool, bool]:
        """Whether somebody does something to it in this frame; whether a mouse moves over it."""
        io = imgui.get_io()
        mouse = (io.mouse_pos.x, io.mouse_pos.y)
        moved, self._mouse = mouse != self._mouse, mouse
        x, y = mouse[0] - corner[0], mouse[1] - corner[1]
        held = imgui.is_any_mouse_down()
        was_touched = self._touched
        if 0 <= x < size[0] and 0 <= y < size[1]:
            self._touched = True
        elif self._touched and not held:
            self._touched = False
        acted = held or io.mouse_wheel != 0 or io.mouse_wheel_h != 0
        used = (
            (self._touched and acted)
            or self._touched != was_touched
            or io.want_text_input
            or (self._focused and any(imgui.is_key_down(key) for key in _KEYS))
            # An open list belongs to the window that opened it, wherever it lies.
            or imgui.is_popup_open("", imgui.PopupFlags_.any_popup)
        )
        return used, self._touched and moved
