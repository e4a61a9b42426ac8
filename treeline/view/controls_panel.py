"""Every declared option with its value, under headings that fold up, and a search over them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from imgui_bundle import imgui

from engine.gpu.errors import UserError
from engine.view.marks import mark
from engine.view.panels.options import Beside, draw_options, label_width
from engine.view.same import same
from passes.option_list import OPTIONS, Option, ViewSettings, changed
from treeline.view.baseline_head import BaselineHead

if TYPE_CHECKING:
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState

FOLDED = ("Traversal", "Queues", "Ray types", "Counters")  # at first: for who tunes kernels
SEARCH_WIDTH = 10.0  # in font sizes


class ControlsPanel:
    """Options are drawn because they are declared. A number that takes a new structure or new
    kernels is taken up when its slider is let go. `wanted` is what is searched for; `only_changed`
    leaves out options that are as they were at the start, or in the baseline."""

    title = "Controls"

    def __init__(self) -> None:
        self.head = BaselineHead()
        self.wanted = ""
        self.only_changed = False
        self.find_soon = False  # puts the keyboard into the search
        self._held: ViewSettings | None = None  # while a slider is held
        self._beside: dict[str, Beside] = {}
        self._beside_of: tuple[object, ...] = ()  # settings, and what they changed from
        self._labels = (0.0, 0.0)  # font size, and the labels' width in it

    def stale(self, session: "ViewSession", state: "ViewState") -> bool:
        return self.head.stale(session)

    def draw(self, session: "ViewSession", state: "ViewState") -> None:
        self.head.draw(session, state)
        settings = self._held or session.settings
        beside = self._follow_settings(session, settings)
        self._draw_search(beside)
        found = find_options(OPTIONS, self.wanted)
        if self.only_changed:
            found = [option for option in found if beside[option.name].changed]
        if not found:
            imgui.text_disabled("no option is changed" if self.only_changed else "none is found")
        searched = bool(self.wanted) or self.only_changed
        for title in dict.fromkeys(option.section for option in found):
            options = [option for option in found if option.section == title]
            if not draw_heading(title, options, beside, folds=not searched):
                continue

            def value_of(option: Option, held: ViewSettings = settings) -> Any:
                return option.get(held)

            new = draw_options("controls", options, value_of, beside, self._label_width())
            if new is not None:
                settings = self._set(session, state, settings, *new)
        if self._held is not None and not imgui.is_any_item_active():
            session.change(self._held)
            self._held = None

    def _draw_search(self, beside: dict[str, Beside]) -> None:
        if self.find_soon:
            imgui.set_keyboard_focus_here()
            self.find_soon = False
        imgui.set_next_item_width(SEARCH_WIDTH * imgui.get_font_size())
        whole = imgui.InputTextFlags_.auto_select_all  # the next search takes the place of the last
        _, self.wanted = imgui.input_text_with_hint("##find", "find an option", self.wanted, whole)
        mark("controls.find")
        imgui.set_item_tooltip("By name, by what it is about, or by a value. Ctrl F")
        imgui.same_line()
        count = sum(there.changed for there in beside.values())
        _, self.only_changed = imgui.checkbox(f"changed ({count})###changed", self.only_changed)
        mark("controls.only_changed")
        imgui.set_item_tooltip("Only options that are not as they were at the start or in A")

    def _label_width(self) -> float:
        size = imgui.get_font_size()
        if self._labels[0] != size:
            self._labels = (size, label_width(OPTIONS))
        return self._labels[1]

    def _follow_settings(self, session: "ViewSession", settings: ViewSettings) -> dict[str, Beside]:
        baseline, start = session.baseline, self.head.start or settings
        before = start if baseline is None else baseline.settings
        beside_of = (settings, before, OPTIONS)
        if not same(beside_of, self._beside_of):
            self._beside_of = beside_of
            label = "was" if baseline is None else f"{baseline.label}:"
            self._beside = beside_options(OPTIONS, settings, before, label)
        return self._beside

    def _set(
        self,
        session: "ViewSession",
        state: "ViewState",
        settings: ViewSettings,
        option: Option,
        value: object,
    ) -> ViewSettings:
        try:
            settings = option.set(settings, value)
        except UserError as error:
            state.messages.append(str(error))
            return settings
        if option.kind == "number" and option.scope != "view":
            self._held = settings
        else:
            session.change(settings)
        return settings


def draw_heading(
    title: str, options: Sequence[Option], beside: dict[str, Beside], *, folds: bool
) -> bool:
    """A section's heading with how many of its options are changed; whether it is open."""
    count = sum(beside[option.name].changed for option in options)
    text = f"{title}: {count} changed" if count else title
    if not folds:
        imgui.separator_text(text)
        return True
    opened = 0 if title in FOLDED else imgui.TreeNodeFlags_.default_open
    is_open = imgui.collapsing_header(f"{text}###{title}", opened)
    mark(f"controls.section.{title}")
    return is_open


def find_options(options: Sequence[Option], wanted: str) -> list[Option]:
    """Those that have every word of `wanted` in what is said of them, whatever the case."""
    words = wanted.lower().split()
    return [option for option in options if all(word in said_of(option) for word in words)]


def said_of(option: Option) -> str:
    texts = (option.name, option.label, option.help, option.section, option.cost_term)
    return " ".join((*texts, *map(str, option.choices))).lower()


def beside_options(
    options: Sequence[Option], settings: ViewSettings, before: ViewSettings, label: str
) -> dict[str, Beside]:
    """By option: what it takes to have an effect where it has none, else its value `before` where
    it differs, named by `label`, else the term of the frame's cost that it changes."""
    differing = {option.name for option in changed(before, settings)}
    found = {}
    for option in options:
        lacked = option.lacks(settings.frame)
        is_changed = option.name in differing
        text = "" if option.cost_term == "none" else option.cost_term
        if is_changed:
            text = f"{label} {option.text(before)}"
        if lacked is not None:
            text = f"needs {lacked.text}"
        found[option.name] = Beside(text, effect_text(option), is_changed, lacked is not None)
    return found


def effect_text(option: Option) -> str:
    """What a change of it does to the frame's cost, and why anything else follows."""
    if option.cost_term == "none":
        return "changes nothing of the frame's cost"
    lines = [f"changes of the frame's cost: {option.cost_term}"]
    lines += [f"and {term}: {reason}" for term, reason in option.follows]
    return "\n".join(lines)
