"""Every command of the viewer with its key: one table for keys, menus and the help overlay."""

from engine.view.shortcuts import CAMERA_SHORTCUTS, Shortcut, Shortcuts
from treeline.view.ray_cursor import RAY_SHORTCUTS

LOOK, COMPARE = "Look at", "Compare"
STRUCTURE, RAY, TIME, FILE = "Structure", "Ray", "Time", "File"

# Keys that show an output at once; the rest is in the menu and on Page Up and Page Down.
OUTPUT_KEYS = {
    "1": "picture",
    "2": "depth",
    "3": "normal",
    "4": "roughness",
    "5": "object",
    "6": "reflection",
    "7": "shadow",
    "8": "nodes/reflection",
    "9": "nodes/shadow",
}

COMMANDS: tuple[Shortcut, ...] = (
    Shortcut("help", "this help", "F1", group=FILE),
    Shortcut("screenshot", "save the window as PNG", "F12", group=FILE),
    Shortcut("save picture", "save the picture as PNG, with its legend", "s", ("Control",), FILE),
    Shortcut("save report", "save report.json and .csv", "e", ("Control",), FILE),
    Shortcut("save capture", "save this frame's rays (.npz)", "k", ("Control",), FILE),
    Shortcut("copy camera", "copy the camera as text", "c", ("Control",), FILE),
    Shortcut("paste camera", "take the camera from the clipboard", "v", ("Control",), FILE),
    Shortcut("quit", "quit", "q", ("Control",), FILE),
    *(
        Shortcut(f"show {name}", name.replace("/", " a pixel, "), key, group=LOOK)
        for key, name in OUTPUT_KEYS.items()
    ),
    Shortcut("next output", "next output", "PageDown", group=LOOK, repeat=True),
    Shortcut("previous output", "output before", "PageUp", group=LOOK, repeat=True),
    Shortcut("auto range", "automatic range", "z", group=LOOK),
    Shortcut("difference", "difference from the baseline", "x", group=COMPARE),
    Shortcut("find option", "find an option", "f", ("Control",), COMPARE),
    Shortcut("counters", "counters on, off", "c", group=COMPARE),
    Shortcut("pin", "pin a baseline", "p", group=COMPARE),
    Shortcut("swap", "switch between A and B", "Tab", group=COMPARE),
    Shortcut("pick", "pick a pixel", group=RAY, gesture="Click"),
    *RAY_SHORTCUTS,
    Shortcut("unpick", "forget the pixel and the selection", "Escape", group=RAY),
    Shortcut("focus", "focus on the selection", "f", group=STRUCTURE),
    Shortcut("hide", "hide the selected instance", "h", group=STRUCTURE),
    Shortcut("show all", "show all instances", "j", group=STRUCTURE),
    Shortcut("reset", "reset selection, boxes and camera", "r", group=STRUCTURE),
    Shortcut("boxes", "boxes on, off", "b", group=STRUCTURE),
    Shortcut("deeper boxes", "boxes a level deeper", "=", group=STRUCTURE, repeat=True),
    Shortcut("higher boxes", "boxes a level higher", "-", group=STRUCTURE, repeat=True),
    Shortcut("play", "play, pause", " ", group=TIME),
    Shortcut("next frame", "a frame on", "ArrowRight", ("Control",), TIME, repeat=True),
    Shortcut("previous frame", "a frame back", "ArrowLeft", ("Control",), TIME, repeat=True),
    Shortcut("camera path", "the camera follows the scene's path", "g", group="Camera"),
    Shortcut("scene camera", "the scene's own camera", "Home", group="Camera"),
    Shortcut("fly", "fly instead of orbit", "v", group="Camera"),
)


def make_shortcuts() -> Shortcuts:
    """All of them, the camera's included. ValueError where two share a key."""
    return Shortcuts((*COMMANDS, *CAMERA_SHORTCUTS))
