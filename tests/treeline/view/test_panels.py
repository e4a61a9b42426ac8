"""The panels of controls, outputs, passes and rays in an offscreen window: every control once."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui

from engine.view import marks
from passes.hybrid import HybridFrame
from passes.option_list import OPTIONS, ViewSettings, find_option
from passes.outputs import frame_outputs
from passes.palettes import PALETTES
from treeline.budgets import median_spent, parse_budgets
from treeline.view.controls_panel import FOLDED, ControlsPanel, beside_options, find_options
from treeline.view.heat_panel import HeatPanel, grouped
from treeline.view.pass_history import PassHistory, pass_rows
from treeline.view.passes_panel import (
    FEW,
    PassesPanel,
    budget_text,
    frame_spans,
    series_of,
    timing_text,
)
from treeline.view.ray_rows import PER, build_rows, ray_columns, ray_rows, spread_rows
from treeline.view.rays_panel import RaysPanel
from treeline.view.view_state import Seen

SIZE = (460, 1600)
Until = Callable[..., int]


@pytest.fixture
def session(open_session: Callable[..., Any], until: Until) -> Any:
    opened = open_session()
    until(opened, lambda: opened.ready)
    return opened


@pytest.fixture
def show(open_panel: Callable[..., Any], session: Any) -> Callable[[Any], Any]:
    return lambda panel: open_panel(session, panel, SIZE)


def test_every_option_has_a_control_that_changes_it_and_nothing_else(
    open_panel: Callable[..., Any], session: Any
) -> None:
    shown = open_panel(session, ControlsPanel(), (460, 2200))
    for title in FOLDED:
        shown.click(f"controls.section.{title}")
    for option in OPTIONS:
        before = session.settings
        name = f"controls.{option.name}"
        if option.kind == "choice":
            wanted = next(choice for choice in option.choices if choice != option.get(before))
            shown.click(name)
            shown.click(f"{name}.{wanted}")
        elif option.kind == "bits":
            wanted = 255 - 2
            shown.click(f"{name}.1")
        elif option.kind == "flag":
            wanted = not option.get(before)
            shown.click(name)
        else:
            shown.click(name, dx=0.3 if option.get(before) < 0.75 * option.high else -0.3)
            wanted = option.get(session.settings)
            assert wanted != option.get(before)
        assert session.settings == option.set(before, wanted), option.name
    shown.click("controls.reset")
    assert session.settings == ViewSettings()


def test_a_held_slider_builds_nothing_until_it_is_let_go(show: Any, session: Any) -> None:
    shown = show(ControlsPanel())
    x, y = marks.centre("controls.reinsertion")
    shown.pointer("pointer_move", x, y)
    shown.pointer("pointer_down", x + 20, y, 1)
    shown.pointer("pointer_move", x + 40, y, 0)
    assert session.settings == ViewSettings()
    shown.pointer("pointer_up", x + 40, y, 1)
    shown.frames()
    assert session.settings.build.reinsertion > 30


def test_pin_change_swap_and_unpin(show: Any, session: Any, until: Until) -> None:
    panel = ControlsPanel()
    shown = show(panel)
    shown.click("controls.swap")  # nothing is pinned: it is off
    assert session.label == "B" and session.baseline is None
    shown.click("controls.pin")
    assert session.baseline is not None and session.baseline.label == "A"
    shown.frames()
    place = marks.rectangles["controls.builder"]
    session.change(find_option("mask/shadow").set(session.settings, 0))
    until(session, lambda: session.ready)
    shown.frames()
    texts = [effect.text for effect in panel.head.comparison.effects]
    assert marks.rectangles["controls.builder"] == place, "however much is said above it"
    assert any(text.startswith("shadow: ") and "-100% triangle tests" in text for text in texts)
    drawn = {name for name in marks.rectangles if "controls.effect" in name}
    assert drawn == {f"controls.effect.{name}" for name in ("frame", "reflection", "shadow")}
    shown.click("controls.every_pass")
    assert len([name for name in marks.rectangles if "controls.effect" in name]) == len(texts)
    shown.click("controls.swap")
    assert session.settings == ViewSettings() and session.label == "A"
    shown.click("controls.unpin")
    assert session.baseline is None


def test_notes_say_what_an_option_claims_what_it_was_or_what_it_needs() -> None:
    before = ViewSettings()
    settings = find_option("occlusion_radius").set(find_option("leaf").set(before, 1), 2.0)
    notes = beside_options(OPTIONS, settings, before, "A:")
    assert notes["leaf"].text == "A: 2" and notes["leaf"].changed and not notes["leaf"].off
    assert notes["roughness_cutoff"].text == "rays" and not notes["roughness_cutoff"].changed
    assert notes["count"].text == ""
    assert "build and update: what deforms" in notes["builder"].tip
    radius = notes["occlusion_radius"]
    assert radius.off and radius.changed and radius.text == "needs occlusion"
    with_rays = find_option("occlusion").set(settings, True)
    assert beside_options(OPTIONS, with_rays, before, "was")["occlusion_radius"].text == "was 0"


def test_options_are_found_by_what_is_said_of_them(show: Any, session: Any) -> None:
    assert find_options(OPTIONS, "") == list(OPTIONS)
    assert [option.name for option in find_options(OPTIONS, "Sobol")] == ["sampler"]
    shadows = {option.name for option in find_options(OPTIONS, "shadow map")}
    assert "shadow_map_size" in shadows and "exposure" not in shadows
    assert find_options(OPTIONS, "map shadow") == find_options(OPTIONS, "shadow map")
    panel = ControlsPanel()
    shown = show(panel)
    assert "controls.builder" in marks.rectangles and "controls.stack" not in marks.rectangles
    panel.wanted = "stack"
    shown.frames()
    drawn = {name.removeprefix("controls.") for name in marks.rectangles}
    found = {option.name for option in find_options(OPTIONS, "stack")}
    assert drawn & {option.name for option in OPTIONS} == found and "stack" in found
    panel.wanted = ""
    session.change(find_option("exposure").set(session.settings, 2.0))
    shown.frames()
    shown.click("controls.only_changed")
    drawn = {name.removeprefix("controls.") for name in marks.rectangles}
    assert drawn & {option.name for option in OPTIONS} == {"exposure"}


def test_rows_out_of_sight_are_not_drawn(open_panel: Callable[..., Any], session: Any) -> None:
    open_panel(session, ControlsPanel(), (460, 300))
    assert "controls.builder" in marks.rectangles and "controls.seed" not in marks.rectangles


def test_every_output_palette_and_range_can_be_chosen(show: Any, session: Any) -> None:
    shown = show(HeatPanel())
    outputs = frame_outputs(session.settings.frame)
    assert sum(len(members) for members in grouped(outputs).values()) == len(outputs)
    for output in outputs:
        shown.click(f"heat.{output.name}")
        assert shown.state.shown == output.name
    count = next(output for output in outputs if output.kind == "count")
    shown.click(f"heat.{count.name}")
    for palette in PALETTES:
        shown.click(f"heat.palette.{palette}")
        assert shown.state.palette == palette
    assert "heat.legend.auto" not in marks.rectangles
    shown.click("heat.difference")
    assert not shown.state.difference  # there is no baseline
    shown.state.seen = Seen(count, (0.0, 40.0), 90.0, "(3, 4) nodes: 12", True)
    shown.frames()
    shown.click("heat.difference")
    assert shown.state.difference
    shown.click("heat.difference")
    x, y = marks.centre("heat.legend.range.high")
    shown.pointer("pointer_move", x, y)
    shown.pointer("pointer_down", x, y, 1)
    for at in (x + 20, x + 40):
        shown.pointer("pointer_move", at, y, 0)
    shown.pointer("pointer_up", x + 40, y, 1)
    assert shown.state.heat_range is not None and shown.state.heat_range[1] > 40
    shown.click("heat.legend.auto")
    assert shown.state.heat_range is None


def test_passes_are_drawn_because_they_are_in_the_frame(
    show: Any, session: Any, until: Until
) -> None:
    until(session, lambda: session.samples > 4)
    panel = PassesPanel()
    shown = show(panel)
    assert session.timed is not None
    drawn = {name.removeprefix("passes.frame.") for name in marks.rectangles if ".frame." in name}
    assert drawn == {span.name for span in frame_spans(session.timed)}
    assert [row[0] for row in pass_rows(session.drawing.recent)] == [
        *session.timed.passes,
        "frame",
        "gaps",
    ]
    shown.click("passes.header.median")
    assert panel.table.data[1][panel.table.order[0]] == max(panel.table.data[1])
    shown.click("passes.copy")
    rows = list(csv.reader(io.StringIO(imgui.get_clipboard_text())))
    assert rows[0][0] == "pass" and len(rows) == 1 + len(panel.table)
    timed = session.device.timing_source == "timestamp-query"
    by_hand = "CPU wall clock" if session.device.info.is_cpu else "wall clock"
    assert ("GPU timestamps" if timed else by_hand) in timing_text(session)


def test_budgets_are_lines_of_the_plot(show: Any, session: Any, until: Until) -> None:
    until(session, lambda: session.samples > 2)
    panel = PassesPanel()
    shown = show(panel)
    shown.state.budgets = parse_budgets("frame=9999,shadow=0.001")
    shown.frames(2)
    shown.click("passes.budget.shadow")
    assert shown.state.budget == "shadow"
    shadow = shown.state.budgets[1]
    alone = series_of(shadow, panel.history.series)
    assert alone and all("shadow" in name.split("/") for name in alone)
    assert "OVER" in budget_text(shadow, median_spent(shadow, session.drawing.recent))
    assert "passes.history" in marks.rectangles
    shown.click("passes.budget.shadow")
    assert shown.state.budget is None
    assert series_of(None, panel.history.series) == panel.history.series


def test_the_table_of_few_frames_is_of_those(show: Any, session: Any) -> None:
    panel = PassesPanel()
    shown = show(panel)
    recent = session.drawing.recent

    def last_after(frame_ms: float) -> float:
        """The newest frame's time in the table after another frame."""
        recent.append(replace(session.timed, frame_total_ms=frame_ms))
        shown.frames(1)
        return panel.table.data[4][panel.table.data[0].index("frame")]

    while len(recent) < FEW:
        assert last_after(100.0 + len(recent)) == 99.0 + len(recent)
    assert last_after(7.0) != 7.0, "of many frames numbers that can be read"
    shown.frames(16)
    assert last_after(8.0) == 7.0


def test_history_follows_frames_and_forgets_passes(session: Any, until: Until) -> None:
    until(session, lambda: session.samples > 3)
    history = PassHistory(3)
    frames = list(session.history)
    history.follow(frames[:2])
    history.follow(frames[:2])
    history.follow(frames)
    for name, values in history.series.items():
        assert values.tolist() == [stats.passes[name] for stats in frames[-3:]]
    session.change(find_option("gbuffer").set(session.settings, "rays"))
    until(session, lambda: session.samples > 5)
    history.follow(session.history)
    assert "gbuffer/rays" in history.series and "gbuffer/raster" not in history.series


def test_a_row_a_ray_type_in_rras_words(show: Any, session: Any) -> None:
    panel = RaysPanel()
    shown = show(panel)
    table, rays = panel.tables["frame"], session.frame.data.rays
    names = [column.name for column in table.columns]
    assert [table.data[0][row] for row in table.order] == [ray.name for ray in rays]
    value = {
        name: dict(zip(table.data[0], table.data[i], strict=True)) for i, name in enumerate(names)
    }
    for ray in rays:
        stats = session.counted.rays[ray.name]
        assert value["rays"][ray.name] == value["hits"][ray.name] + value["misses"][ray.name]
        for kind, entered in (("box", "box hits"), ("triangle", "candidates")):
            hits, misses = value[entered][ray.name], value[f"{kind} misses"][ray.name]
            assert hits + misses == value[f"{kind} tests"][ray.name]
        assert value["nodes"][ray.name] == stats.nodes
        assert value["instances entered"][ray.name] == stats.instance_hits
        assert value["rate"][ray.name] > 0
    for per in PER:
        shown.click(f"rays.per.{per}")
        assert panel.per == per
        if per == "ray":
            column = [c.name for c in ray_columns(per)].index("nodes")
            row = ray_rows(session.drawing.recent, session.counted, per, 1000)[0]
            stats = session.counted.rays[row[0]]
            assert row[column] == stats.nodes / stats.rays
    shown.click("rays.hit.copy")
    assert imgui.get_clipboard_text().startswith("ray type,")
    shown.click("rays.builds.copy")
    assert "ploc" in imgui.get_clipboard_text()


def test_how_nodes_are_spread_over_rays(show: Any, session: Any, until: Until) -> None:
    panel = RaysPanel()
    shown = show(panel)
    table = panel.spreads
    assert list(table.data[0]) == [ray.name for ray in session.frame.data.rays]
    names = [column.name for column in table.columns]
    assert names[1:4] == ["1", "2 to 3", "4 to 7"] and names[-1] == "512 on"
    again = HybridFrame(
        session.device,
        session.active.structure.prepared,
        replace(session.frame.options, count=True),
        session.frame.scene,
    )
    again.inputs = session.counted.inputs
    again.run(0)
    planes = {ray.name: again.data.read_slot_counts(ray, "nodes") for ray in again.data.rays}
    for name, *parts in zip(*table.data, strict=True):
        nodes = planes[name][planes[name] > 0]
        wanted = np.histogram(nodes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1e9])[0]
        assert parts == pytest.approx((100 * wanted / len(nodes)).tolist())
    shown.click("rays.spreads.copy")
    assert imgui.get_clipboard_text().startswith("ray type,1")
    # Without counters nothing is read that it could be made of.
    session.change(find_option("count").set(session.settings, False))
    until(session, lambda: session.counted is None and session.timed is not None)
    shown.frames()
    assert len(table) == 0 and spread_rows(None) == []
    assert all(stats.nodes_octaves is None for stats in session.timed.rays.values())


def test_many_nodes_have_the_last_column(make_stats: Any) -> None:
    stats = make_stats(50, 20, True)
    octaves = (0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 4, 5)  # 1, 4 to 7, 256 to 511, 512 on
    rays = {
        "shadow": replace(stats.rays["shadow"], nodes_octaves=octaves),
        "reflection": replace(stats.rays["shadow"], nodes_octaves=(0, 4)),
        "occlusion": replace(stats.rays["shadow"], nodes_octaves=()),
    }
    found = spread_rows(replace(stats, rays=rays))
    part = 100 / 15
    assert [row[0] for row in found] == ["shadow", "reflection"]
    assert found[0][1:] == pytest.approx((part, 0, 2 * part, 0, 0, 0, 0, 0, 3 * part, 9 * part))
    assert found[1][1:] == (100, *[0] * 9)


def test_a_row_a_blas_that_was_built(session: Any) -> None:
    bvh = session.active.structure.bvh
    assert [row[0] for row in build_rows(bvh, ())] == list(bvh.blas_names)


def test_without_numbers_panels_say_so_and_draw(show: Any, session: Any) -> None:
    session.change(find_option("count").set(session.settings, False))
    shown = show(RaysPanel())
    session.drawing.look(session.drawing.inputs, False)
    for panel in (RaysPanel(), PassesPanel(), ControlsPanel(), HeatPanel()):
        shown.panel = panel
        shown.frames()
    assert session.timed is None
