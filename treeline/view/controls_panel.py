"""Every declared option with its value, and what the changes since the baseline have done."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from imgui_bundle import imgui

from engine.gpu.errors import UserError
from engine.view import theme
from engine.view.marks import mark
from engine.view.panels.options import draw_options
from passes.option_list import OPTIONS, Option, ViewSettings, changed
from treeline.view.baseline import Baseline, Comparison, Effect, difference

if TYPE_CHECKING:
    from passes.frame_stats import FrameStats
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState

REFRESH_S = 0.25
# Headings and the scopes of the options below them.
SECTIONS = (("Structure", ("build", "scene")), ("Frame", ("frame",)), ("View", ("view",)))


class ControlsPanel:
    """Options are drawn because they are declared. A number that takes a new structure or new
    kernels is taken up when its slider is let go."""

    title = "Controls"

    def __init__(self) -> None:
        self.start: ViewSettings | None = None  # what reset goes back to
        self._held: ViewSettings | None = None  # while a slider is held
        self._notes: dict[str, str] = {}
        self._noted: tuple[object, ...] = (None, None)  # the settings and baseline of the notes
        self._comparison = Comparison("")
        self._compared: tuple[object, ...] = ()
        self._refreshed = float("-inf")
        self._timed: FrameStats | None = None  # the newest that was compared

    def stale(self, session: "ViewSession", state: "ViewState") -> bool:
        if session.baseline is None or session.timed is self._timed:
            return False
        if session.moving and self._comparison.problem:
            return False  # of a view that moves there are no effects
        return imgui.get_time() - self._refreshed >= REFRESH_S

    def draw(self, session: "ViewSession", state: "ViewState") -> None:
        if self.start is None:
            self.start = session.settings
        self._draw_baseline(session, state)
        settings = self._held or session.settings
        notes = self._follow_notes(settings, session.baseline)
        for title, scopes in SECTIONS:
            imgui.separator_text(title)
            options = [option for option in OPTIONS if option.scope in scopes]

            def value_of(option: Option, held: ViewSettings = settings) -> Any:
                return option.get(held)

            new = draw_options("controls", options, value_of, notes)
            if new is not None:
                settings = self._set(session, state, settings, *new)
        if self._held is not None and not imgui.is_any_item_active():
            session.change(self._held)
            self._held = None

    def _follow_notes(self, settings: ViewSettings, baseline: Baseline | None) -> dict[str, str]:
        if self._noted[0] is not settings or self._noted[1] is not baseline:
            self._noted = (settings, baseline)
            self._notes = option_notes(OPTIONS, settings, baseline)
        return self._notes

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

    def _draw_baseline(self, session: "ViewSession", state: "ViewState") -> None:
        """Pin, swap, reset; then what has changed and what came of it. Pin and swap are commands:
        the picture keeps its counts with them."""
        baseline = session.baseline
        for command, label, off in (
            ("pin", "Pin as A", session.timed is None),
            ("swap", "Swap A and B", baseline is None),
        ):
            imgui.begin_disabled(off)
            if imgui.button(label):
                state.asked.append(command)
            mark(f"controls.{command}")
            imgui.end_disabled()
            imgui.same_line()
        imgui.begin_disabled(baseline is None)
        if imgui.button("Unpin"):
            session.unpin()
        mark("controls.unpin")
        imgui.end_disabled()
        imgui.same_line()
        imgui.begin_disabled(session.settings == self.start)
        if imgui.button("Reset") and self.start is not None:
            session.change(self.start)
        mark("controls.reset")
        imgui.end_disabled()
        imgui.set_item_tooltip("All options as they were at the start")
        if baseline is None:
            imgui.text_disabled("Pin a baseline to see what a change does.")
            return
        names = difference(baseline, session.settings) or "nothing is changed"
        imgui.text_wrapped(f"{session.label} against {baseline.label}: {names}")
        self._refresh(session, baseline)
        if self._comparison.problem:
            imgui.text_disabled(self._comparison.problem)
        passes = () if session.timed is None else tuple(session.timed.passes)
        effects = self._comparison.effects
        draw_effects([effect for effect in effects if effect.subject not in passes])
        of_passes = [effect for effect in effects if effect.subject in passes]
        # Closed at first: a line a pass would push the options out of the window.
        if of_passes:
            opened = imgui.tree_node("each pass")
            mark("controls.every_pass")
            if opened:
                draw_effects(of_passes)
                imgui.tree_pop()

    def _refresh(self, session: "ViewSession", baseline: Baseline) -> None:
        now = imgui.get_time()
        compared = (baseline, session.drawing, session.counted)
        same = len(self._compared) == len(compared) and all(
            one is other for one, other in zip(compared, self._compared, strict=True)
        )
        if not same or now - self._refreshed >= REFRESH_S:
            self._compared, self._refreshed = compared, now
            self._timed = session.timed
            self._comparison = session.effects()


def draw_effects(effects: list[Effect]) -> None:
    """A line each; grey where nothing has changed beyond noise."""
    for effect in effects:
        noise = all(change.noise is not False or not change.share for change in effect.changes)
        colour = theme.DIM if noise else theme.TEXT
        imgui.push_style_color(imgui.Col_.text, theme.opaque(colour))
        imgui.text_wrapped(effect.text)
        imgui.pop_style_color()
        mark(f"controls.effect.{effect.subject}")


def option_notes(
    options: Sequence[Option], settings: ViewSettings, baseline: Baseline | None
) -> dict[str, str]:
    """By option: the baseline's value where it differs, else what the option claims to change."""
    differing = () if baseline is None else changed(baseline.settings, settings)
    notes = {o.name: "" if o.cost_term == "none" else o.cost_term for o in options}
    for option in differing:
        if baseline is not None and option in options:
            notes[option.name] = f"{baseline.label}: {option.text(baseline.settings)}"
    return notes
