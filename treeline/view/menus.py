"""The menu bar: every command by its name, with its key."""

from collections.abc import Callable, Sequence

from imgui_bundle import imgui

from engine.view.marks import mark
from engine.view.quiet_window import QuietWindow
from engine.view.shortcuts import Shortcuts
from passes.outputs import Output

Act = Callable[[str], None]

# Menu -> commands, None for a line between them.
MENUS: dict[str, tuple[str | None, ...]] = {
    "File": (
        "screenshot",
        "save picture",
        "save report",
        "save capture",
        None,
        "copy camera",
        "paste camera",
        None,
        "quit",
    ),
    "Camera": (
        "scene camera",
        "camera path",
        "fly",
        "focus",
        None,
        "view front",
        "view right",
        "view top",
    ),
    "Structure": ("boxes", "deeper boxes", "higher boxes", None, "hide", "show all", "reset"),
    "Ray": (
        "ray step on",
        "ray step back",
        "ray first step",
        "ray last step",
        "ray hit",
        None,
        "ray after",
        "ray before",
        None,
        "unpick",
    ),
    "Compare": ("pin", "swap", "difference", None, "find option", "counters"),
    "Help": ("help",),
}


class Menus:
    """The bar over the whole window; `height` is its last one in logical pixels."""

    def __init__(self) -> None:
        self.height = 0.0
        self.quiet = QuietWindow(stale=lambda: False)

    def draw(
        self,
        width: float,
        shortcuts: Shortcuts,
        outputs: Sequence[Output],
        shown: str,
        panels: Sequence[str],
        act: Act,
        ticked: Callable[[str], bool],
    ) -> None:
        """`act` gets the command that was chosen; "show NAME" and "panel NAME" among them."""
        begin, size = imgui.begin_main_menu_bar, (width, self.height)
        with self.quiet.window(begin, (0.0, 0.0), size, ()) as build:
            if build:
                self.height = imgui.get_window_size().y
                _draw_menus(shortcuts, outputs, shown, panels, act, ticked)
                imgui.end_main_menu_bar()


def _draw_menus(
    shortcuts: Shortcuts,
    outputs: Sequence[Output],
    shown: str,
    panels: Sequence[str],
    act: Act,
    ticked: Callable[[str], bool],
) -> None:
    texts = {entry.action: entry.text for entry in shortcuts.entries}
    for menu, commands in MENUS.items():
        if menu == "Camera":
            _draw_look_at(shortcuts, outputs, shown, panels, act)
        opened = imgui.begin_menu(menu)
        if not opened:
            mark(f"menu.{menu}")
            continue
        for command in commands:
            if command is None:
                imgui.separator()
                continue
            hint = shortcuts.hint(command)
            if imgui.menu_item_simple(_capital(texts[command]), hint, ticked(command)):
                act(command)
            mark(f"menu.{command}")
        imgui.end_menu()


def _draw_look_at(
    shortcuts: Shortcuts, outputs: Sequence[Output], shown: str, panels: Sequence[str], act: Act
) -> None:
    """Outputs of the frame, counts in a menu of their own a ray type, then the panels."""
    if not imgui.begin_menu("View"):
        mark("menu.View")
        return
    for output in outputs:
        if output.kind != "count":
            _draw_output(shortcuts, output, output.label, shown, act)
    ray_types = dict.fromkeys(o.ray_type for o in outputs if o.kind == "count")
    for ray_type in ray_types:
        if imgui.begin_menu(f"Heat map: {ray_type}"):
            for output in outputs:
                if output.kind == "count" and output.ray_type == ray_type:
                    _draw_output(shortcuts, output, output.label, shown, act)
            imgui.end_menu()
    imgui.separator()
    for panel in panels:
        if imgui.menu_item_simple(panel):
            act(f"panel {panel}")
        mark(f"menu.panel.{panel}")
    imgui.end_menu()


def _draw_output(shortcuts: Shortcuts, output: Output, label: str, shown: str, act: Act) -> None:
    command = f"show {output.name}"
    if imgui.menu_item_simple(_capital(label), shortcuts.hint(command), output.name == shown):
        act(command)
    mark(f"menu.{command}")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
