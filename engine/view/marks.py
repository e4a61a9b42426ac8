"""Where this frame's items lie on screen, by name: tests click a name, never a pixel.

A widget calls `mark` right after the imgui item it is about. The window clears the marks before it
builds a frame, so an item that is not drawn has none; one that is drawn as it was built in an
earlier frame keeps its own (`QuietWindow`).
"""

from imgui_bundle import imgui

Rectangle = tuple[float, float, float, float]  # left, top, right, bottom in logical pixels

rectangles: dict[str, Rectangle] = {}


def mark(name: str) -> None:
    """Keeps the rectangle of the item drawn last."""
    low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
    rectangles[name] = (low.x, low.y, high.x, high.y)


def mark_region(name: str, low: imgui.ImVec2, high: imgui.ImVec2) -> None:
    """Keeps a rectangle that is no item."""
    rectangles[name] = (low.x, low.y, high.x, high.y)


def centre(name: str) -> tuple[float, float]:
    """The middle of a marked item. KeyError with the names there are when it is not drawn."""
    if name not in rectangles:
        raise KeyError(f"'{name}' is not drawn; marks: {', '.join(sorted(rectangles))}")
    left, top, right, bottom = rectangles[name]
    return 0.5 * (left + right), 0.5 * (top + bottom)
