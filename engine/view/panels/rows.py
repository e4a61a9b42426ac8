"""Rows of a table or list, of which only those in sight are drawn."""

from collections.abc import Iterator

from imgui_bundle import imgui


def rows_in_sight(count: int, height: float) -> Iterator[int]:
    """The rows to draw now, of `count` that are `height` logical pixels high each. To be used up
    or dropped within the frame: after an error in what draws a row, imgui is told of the end."""
    clipper = imgui.ListClipper()
    clipper.begin(count, height)
    try:
        while clipper.step():
            yield from range(clipper.display_start, clipper.display_end)
    finally:
        clipper.end()
