"""An error where the user looks, with a way on."""

from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark


def message_box(name: str, title: str, text: str, button: str = "Retry") -> bool:
    """A framed box as wide as the window: `title`, the wrapped `text` (long words too), a button
    to copy it and `button` (none if empty). True when `button` was pressed."""
    pressed = False
    imgui.push_style_color(imgui.Col_.border, theme.opaque(theme.ERROR))
    imgui.push_style_color(imgui.Col_.child_bg, theme.opaque(theme.FIELD))
    flags = imgui.ChildFlags_
    imgui.begin_child(
        f"##{name}",
        imgui.ImVec2(0, 0),
        flags.borders | flags.auto_resize_y | flags.always_use_window_padding,
    )
    imgui.push_style_color(imgui.Col_.text, theme.opaque(theme.ERROR))
    imgui.text_wrapped(title)
    imgui.pop_style_color()
    imgui.push_text_wrap_pos(0.0)
    imgui.text_unformatted(text)
    imgui.pop_text_wrap_pos()
    if button:
        pressed = imgui.button(f"{button}##{name}")
        mark(f"{name}.button")
        imgui.same_line()
    if imgui.button(f"Copy text##{name}"):
        imgui.set_clipboard_text(f"{title}\n{text}")
    mark(f"{name}.copy")
    imgui.end_child()
    mark(name)
    imgui.pop_style_color(2)
    return pressed
