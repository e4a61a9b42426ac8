"""Passes the canvas' events on to Dear ImGui, under one set of key names."""

from typing import Any

from imgui_bundle import imgui
from wgpu.utils.imgui import ImguiRenderer

# What starts a change on screen; the rest (resize, close, enter) is the system's doing.
INPUT_EVENTS = ("pointer_down", "pointer_up", "pointer_move", "wheel", "key_down", "key_up", "char")

_WHEEL_NOTCH = 100.0  # rendercanvas counts a notch of the wheel as 100
_CHARACTERS = {
    " ": "space",
    ",": "comma",
    ".": "period",
    "-": "minus",
    "=": "equal",
    "/": "slash",
    ";": "semicolon",
    "'": "apostrophe",
    "[": "left_bracket",
    "]": "right_bracket",
    "\\": "backslash",
    "`": "grave_accent",
}
_KEYPAD = {
    "Decimal": "decimal",
    "Divide": "divide",
    "Multiply": "multiply",
    "Subtract": "subtract",
    "Add": "add",
    "Enter": "enter",
    "Equal": "equal",
}


def _key_table() -> dict[str, Any]:
    table = dict(ImguiRenderer.KEY_MAP)
    table |= {name: getattr(imgui.Key, key) for name, key in _CHARACTERS.items()}
    table |= {f"Numpad{digit}": getattr(imgui.Key, f"keypad{digit}") for digit in range(10)}
    table |= {f"Numpad{k}": getattr(imgui.Key, f"keypad_{v}") for k, v in _KEYPAD.items()}
    table |= {chr(code): getattr(imgui.Key, chr(code)) for code in range(ord("a"), ord("z") + 1)}
    table |= {str(digit): getattr(imgui.Key, f"_{digit}") for digit in range(10)}
    return table


KEYS = _key_table()  # event's key name (letters in lower case) -> imgui key
MODIFIERS = dict(ImguiRenderer.KEY_MAP_MOD)


def imgui_key(name: str) -> Any:
    """The imgui key of an event's key name; None for a key that imgui does not know."""
    return KEYS.get(name) or KEYS.get(name.lower())


def feed(io: Any, event: dict[str, Any]) -> None:
    """One canvas event into imgui's queue."""
    kind = event["event_type"]
    if kind == "pointer_move":
        io.add_mouse_pos_event(event["x"], event["y"])
    elif kind in ("pointer_down", "pointer_up"):
        io.add_mouse_pos_event(event["x"], event["y"])
        if 1 <= event["button"] <= 5:
            io.add_mouse_button_event(event["button"] - 1, kind == "pointer_down")
    elif kind == "pointer_leave":
        # Not while a button is down: a drag goes on outside of the window.
        if not any(io.mouse_down):
            io.add_mouse_pos_event(-imgui.FLT_MAX, -imgui.FLT_MAX)
    elif kind == "wheel":
        io.add_mouse_wheel_event(-event["dx"] / _WHEEL_NOTCH, -event["dy"] / _WHEEL_NOTCH)
    elif kind in ("key_down", "key_up"):
        down = kind == "key_down"
        key = imgui_key(event["key"])
        if key is not None:
            io.add_key_event(key, down)
        if event["key"] in MODIFIERS:
            io.add_key_event(MODIFIERS[event["key"]], down)
    elif kind == "char":
        io.add_input_characters_utf8(event.get("data") or "")
