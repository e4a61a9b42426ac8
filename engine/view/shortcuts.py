"""Keys and what they do, in one table: it finds what was pressed, gives menus their hints and draws
the help overlay, so these three cannot disagree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from imgui_bundle import imgui

from engine.view import theme
from engine.view.interface_input import MODIFIERS, imgui_key
from engine.view.marks import mark, mark_region

_NAMES = {
    " ": "Space",
    "Control": "Ctrl",
    "ArrowLeft": "Left",
    "ArrowRight": "Right",
    "ArrowUp": "Up",
    "ArrowDown": "Down",
    "NumpadAdd": "Num +",
    "NumpadSubtract": "Num -",
    "Escape": "Esc",
}
MOST_COLUMNS = 3  # of the help
GROUP_LINES = 1.4  # a group's title and what is left free below the group
_ORDER = ("Control", "Alt", "Shift", "Meta")


def key_label(key: str, modifiers: Iterable[str] = ()) -> str:
    """As a menu writes it: "Ctrl+Shift+S", "Num 7"."""
    held = set(modifiers)
    parts = [_NAMES.get(m, m) for m in _ORDER if m in held]
    name = _NAMES.get(key) or (f"Num {key[6:]}" if key.startswith("Numpad") else key)
    return "+".join([*parts, name.upper() if len(name) == 1 else name])


@dataclass(frozen=True, slots=True)
class Shortcut:
    """`key` is a key event's name in lower case for letters ("s", "F1", " ", "Numpad7"). `held`
    keys are not pressed but held down, and handled by who needs them (flying); mouse gestures have
    no key and stand in `gesture`. Both are listed for the help only."""

    action: str
    text: str
    key: str = ""
    modifiers: tuple[str, ...] = ()
    group: str = "General"
    held: bool = False
    repeat: bool = False
    gesture: str = ""

    @property
    def label(self) -> str:
        return self.gesture or key_label(self.key, self.modifiers)


CAMERA_SHORTCUTS = (
    Shortcut("orbit", "orbit", group="Camera", gesture="Left drag"),
    Shortcut("pan", "pan", group="Camera", gesture="Middle drag, Shift+left drag"),
    Shortcut("dolly", "nearer, farther", group="Camera", gesture="Wheel, right drag"),
    Shortcut("view front", "front view", "Numpad1", group="Camera"),
    Shortcut("view back", "back view", "Numpad1", ("Control",), group="Camera"),
    Shortcut("view right", "right view", "Numpad3", group="Camera"),
    Shortcut("view left", "left view", "Numpad3", ("Control",), group="Camera"),
    Shortcut("view top", "top view", "Numpad7", group="Camera"),
    Shortcut("view bottom", "bottom view", "Numpad7", ("Control",), group="Camera"),
    Shortcut("turn left", "orbit by 15 degrees", "Numpad4", group="Camera", repeat=True),
    Shortcut("turn right", "orbit by 15 degrees", "Numpad6", group="Camera", repeat=True),
    Shortcut("turn up", "orbit by 15 degrees", "Numpad8", group="Camera", repeat=True),
    Shortcut("turn down", "orbit by 15 degrees", "Numpad2", group="Camera", repeat=True),
    Shortcut("nearer", "nearer", "NumpadAdd", group="Camera", repeat=True),
    Shortcut("farther", "farther", "NumpadSubtract", group="Camera", repeat=True),
    Shortcut("look", "look around", group="Flying", gesture="Right drag, left drag"),
    Shortcut("forward", "fly forward", "w", group="Flying", held=True),
    Shortcut("left", "fly left", "a", group="Flying", held=True),
    Shortcut("backward", "fly backward", "s", group="Flying", held=True),
    Shortcut("right", "fly right", "d", group="Flying", held=True),
    Shortcut("sink", "sink", "q", group="Flying", held=True),
    Shortcut("rise", "rise", "e", group="Flying", held=True),
    Shortcut("faster", "fly faster", group="Flying", gesture="Shift, wheel"),
)


class Shortcuts:
    """All shortcuts of a program. ValueError when two share a key, or a key has no name."""

    def __init__(self, entries: Sequence[Shortcut]) -> None:
        self.entries = tuple(entries)
        self._by_action: dict[str, Shortcut] = {}
        self._pressed: list[tuple[Shortcut, Any, frozenset[str]]] = []  # with imgui's key
        taken: dict[tuple[str, frozenset[str]], Shortcut] = {}
        for entry in self.entries:
            if entry.action in self._by_action:
                raise ValueError(f"two shortcuts are named '{entry.action}'")
            self._by_action[entry.action] = entry
            if entry.gesture:
                continue
            if imgui_key(entry.key) is None or set(entry.modifiers) - set(MODIFIERS):
                raise ValueError(f"'{entry.action}': no key is named {entry.label!r}")
            modifiers = frozenset(entry.modifiers)
            if entry.key and not entry.held:
                self._pressed.append((entry, imgui_key(entry.key), modifiers))
            combination = (entry.key, modifiers)
            other = taken.setdefault(combination, entry)
            if other is not entry:
                raise ValueError(
                    f"'{entry.action}' and '{other.action}' share the key {entry.label}"
                )

    def hint(self, action: str) -> str:
        """What a menu writes beside an action; nothing for one without a key."""
        entry = self._by_action.get(action)
        return entry.label if entry and entry.key else ""

    def pressed(self) -> list[str]:
        """Actions whose keys went down in this frame; none while text is being typed."""
        io = imgui.get_io()
        if io.want_text_input:
            return []
        held = {
            name
            for name, down in (
                ("Control", io.key_ctrl),
                ("Shift", io.key_shift),
                ("Alt", io.key_alt),
                ("Meta", io.key_super),
            )
            if down
        }
        return [
            entry.action
            for entry, key, modifiers in self._pressed
            if held == modifiers and imgui.is_key_pressed(key, entry.repeat)
        ]

    def groups(self) -> dict[str, list[Shortcut]]:
        """Entries by group, in the table's order."""
        found: dict[str, list[Shortcut]] = {}
        for entry in self.entries:
            found.setdefault(entry.group, []).append(entry)
        return found

    def draw_help(self, title: str = "Keys and mouse") -> bool:
        """The overlay with every entry, in as many columns as fit. False once it is to be closed:
        by Escape, a click beside it, or its button."""
        display = imgui.get_io().display_size
        # Lines close together, so that a small window has room for all.
        imgui.push_style_var(imgui.StyleVar_.item_spacing, (6.0, 1.0))
        room = 0.96 * display.y - 3.5 * imgui.get_frame_height()
        columns = self._columns(room / imgui.get_text_line_height_with_spacing())
        middle = imgui.ImVec2(0.5 * display.x, 0.5 * display.y)
        imgui.set_next_window_pos(middle, imgui.Cond_.always, imgui.ImVec2(0.5, 0.5))
        imgui.set_next_window_size_constraints(
            imgui.ImVec2(200, 100), imgui.ImVec2(display.x * 0.97, display.y * 0.96)
        )
        flags = imgui.WindowFlags_
        opened, stay = imgui.begin(
            f"{title}###help",
            True,
            flags.no_collapse
            | flags.no_move
            | flags.always_auto_resize
            | flags.no_resize
            | flags.no_saved_settings,
        )
        if opened:
            self._draw_columns(columns)
            if imgui.button("Close"):
                stay = False
            mark("help.close")
        low, size = imgui.get_window_pos(), imgui.get_window_size()
        mark_region("help", low, imgui.ImVec2(low.x + size.x, low.y + size.y))
        clicked_beside = imgui.is_mouse_clicked(0) and not imgui.is_window_hovered()
        # Not in the frame that opened it: that click or key belongs to what opened it.
        if not imgui.is_window_appearing():
            if imgui.is_key_pressed(imgui.Key.escape, False) or clicked_beside:
                stay = False
        imgui.end()
        imgui.pop_style_var()
        return bool(stay)

    def _columns(self, room: float) -> list[list[tuple[str, list[Shortcut]]]]:
        """The groups in as few columns as have `room` lines for them (or MOST_COLUMNS), in order
        and as even as can be."""
        groups = list(self.groups().items())
        columns = [groups]
        for count in range(1, min(MOST_COLUMNS, len(groups)) + 1):
            splits = (
                [groups[a:b] for a, b in pairwise((0, *cuts, len(groups)))]
                for cuts in combinations(range(1, len(groups)), count - 1)
            )
            columns = min(splits, key=_tallest)
            if _tallest(columns) <= room:
                break
        return columns

    def _draw_columns(self, columns: list[list[tuple[str, list[Shortcut]]]]) -> None:
        gap = imgui.get_font_size()
        for number, groups in enumerate(columns):
            if number:
                imgui.same_line(0.0, 2 * gap)
            imgui.begin_group()
            for group, entries in groups:
                imgui.push_style_color(imgui.Col_.text, theme.opaque(theme.ACCENT_BRIGHT))
                imgui.text(group)
                imgui.pop_style_color()
                widest = max(imgui.calc_text_size(entry.label).x for entry in entries)
                for entry in entries:
                    imgui.text_disabled(entry.label)
                    imgui.same_line(widest + gap)
                    imgui.text(entry.text)
                imgui.dummy((0.0, (GROUP_LINES - 1.0) * gap))
            imgui.end_group()


def _tallest(columns: list[list[tuple[str, list[Shortcut]]]]) -> float:
    """In lines."""
    return max(sum(len(entries) + GROUP_LINES for _, entries in column) for column in columns)
