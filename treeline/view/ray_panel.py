"""The ray inspector: the picked pixel's rays and every step of one of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from imgui_bundle import imgui

from engine.view import theme
from engine.view.marks import mark
from treeline.view.pick import Pick
from treeline.view.pixel_rays import PixelRay
from treeline.view.ray_cursor import RayCursor
from treeline.view.ray_overlay import STATE_COLOURS, ray_colour
from treeline.view.ray_walk import (
    RayWalk,
    Slot,
    distance,
    numbers,
    pointer_text,
    slot_text,
    stack_lines,
)

if TYPE_CHECKING:
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState

HINT = "Click a pixel of the picture: its rays appear here and in the picture."
LIST_SHARE = 0.45  # of what is left, for the list of steps


class RayPanel:
    """What it shows, and what keys and buttons do, is in `cursor`."""

    title = "Ray"

    def __init__(self) -> None:
        self.cursor = RayCursor()

    def stale(self, session: "ViewSession", state: "ViewState") -> bool:
        """Nothing in it comes by itself but walks and checks, which are seen at once."""
        return False

    def draw(self, session: "ViewSession", state: "ViewState") -> None:
        walk = self.cursor.follow(state)
        if walk is None or state.picked is None:
            imgui.text_wrapped(HINT)
            return
        _draw_pixel(state.picked)
        self._draw_rays(state.picked, state)
        if imgui.collapsing_header("Parameters"):
            _draw_fields(_parameters(walk))
        mark("ray.parameters")
        self._draw_buttons(walk, state)
        height = max(90.0, LIST_SHARE * imgui.get_content_region_avail().y)
        self._draw_steps(walk, state, height)
        imgui.begin_child("##detail", imgui.ImVec2(0, 0))
        self._draw_detail(walk, state.ray_step)
        imgui.end_child()

    def _draw_rays(self, picked: Pick, state: "ViewState") -> None:
        flags = imgui.TableFlags_
        style = flags.row_bg | flags.borders_inner_v | flags.sizing_stretch_prop
        if not imgui.begin_table("##rays", 4, style | flags.no_saved_settings):
            return
        fixed = imgui.TableColumnFlags_.width_fixed
        imgui.table_setup_column("Ray")
        imgui.table_setup_column("Result")
        width = imgui.calc_text_size("00000").x
        imgui.table_setup_column("Nodes", fixed, width)
        imgui.table_setup_column("Tris", fixed, width)
        imgui.table_headers_row()
        for number, ray in enumerate(picked.rays):
            imgui.table_next_row()
            imgui.table_next_column()
            _coloured(ray_colour(ray.ray_type), "  " * ray.depth + ray.ray_type)
            imgui.same_line(0.0, 0.0)
            span = imgui.SelectableFlags_.span_all_columns
            if imgui.selectable(f"##ray{number}", number == state.ray_index, span)[0]:
                self.cursor.choose_ray(number, state)
            mark(f"ray.row.{number}")
            imgui.set_item_tooltip(ray.kind)
            imgui.table_next_column()
            imgui.text_unformatted(_short_result(ray))
            for name in ("nodes", "triangle_tests"):
                imgui.table_next_column()
                known = ray.counts or (
                    self.cursor.walks[number].counts if number in self.cursor.walks else {}
                )
                imgui.text_unformatted(str(known.get(name, "...")))
        imgui.end_table()

    def _draw_buttons(self, walk: RayWalk, state: "ViewState") -> None:
        wrap = imgui.get_content_region_avail().x
        buttons: tuple[tuple[str, str, Callable[[], object]], ...] = (
            ("|<", "first", lambda: self.cursor.go_to(0, state)),
            ("<", "back", lambda: self.cursor.go_to(state.ray_step - 1, state)),
            (">", "on", lambda: self.cursor.go_to(state.ray_step + 1, state)),
            (">|", "last", lambda: self.cursor.go_to(len(walk) - 1, state)),
            ("To the hit", "hit", lambda: self.cursor.go_to(walk.hit, state)),
            ("Copy text", "copy", lambda: imgui.set_clipboard_text(walk.text())),
            ("Verify on the GPU", "verify", lambda: self.cursor.verify_soon(state.ray_index)),
        )
        for place, (label, name, do) in enumerate(buttons):
            if place:
                imgui.same_line()
                width = imgui.calc_text_size(label).x + 2 * imgui.get_style().frame_padding.x
                if imgui.get_cursor_pos_x() + width > wrap:
                    imgui.new_line()
            unable = (name == "hit" and walk.hit < 0) or (name == "verify" and walk.ray.contract)
            imgui.begin_disabled(unable)
            if imgui.button(f"{label}##ray"):
                do()
            imgui.end_disabled()
            mark(f"ray.{name}")
        check = self.cursor.checks.get(state.ray_index)
        if walk.ray.contract:
            imgui.text_disabled("Steps by the oracle: contract traversal keeps no log.")
        elif self.cursor.wanted == state.ray_index:
            imgui.text_disabled("tracing on the GPU ...")
        elif check is None:
            imgui.text_disabled("Steps by the oracle, not verified.")
        else:
            colour = theme.GOOD if check.verified else theme.ERROR
            imgui.push_style_color(imgui.Col_.text, theme.opaque(colour))
            imgui.text_wrapped(check.verdict)
            imgui.pop_style_color()
        mark("ray.verdict")

    def _draw_steps(self, walk: RayWalk, state: "ViewState", height: float) -> None:
        """The list of steps: only the lines on screen are made."""
        imgui.begin_child("##steps", imgui.ImVec2(0, height), imgui.ChildFlags_.borders)
        line = imgui.get_text_line_height_with_spacing()
        if self.cursor.moved:
            imgui.set_scroll_y(max(0.0, state.ray_step * line - 0.4 * height))
            self.cursor.moved = False
        clipper = imgui.ListClipper()
        clipper.begin(len(walk), line)
        while clipper.step():
            for number in range(clipper.display_start, clipper.display_end):
                inside = walk.places[number][1] >= 0
                label = f"{number + 1:4d}  {'  ' if inside else ''}{walk.title(number)}"
                chosen = number == state.ray_step
                if imgui.selectable(f"{label}##step{number}", chosen)[0]:
                    self.cursor.go_to(number, state)
                    self.cursor.moved = False
                mark(f"ray.step.{number}")
        imgui.end_child()

    def _draw_detail(self, walk: RayWalk, number: int) -> None:
        step, move = walk.steps[number], walk.moves[number]
        imgui.text_wrapped(f"Step {number + 1} of {len(walk)}: {walk.title(number)}")
        for line in walk.facts(number):
            imgui.push_style_color(imgui.Col_.text, theme.opaque(theme.DIM))
            imgui.text_wrapped(line)
            imgui.pop_style_color()
        if step.kind == "box":
            for index, slot in enumerate(walk.slots(number)):
                self._draw_slot(index, slot, step.boxes[index])
        for line in stack_lines(move):
            imgui.text_wrapped(line)
        if move.entries:
            imgui.push_style_color(imgui.Col_.text, theme.opaque(theme.DIM))
            imgui.text_wrapped("top " + ", ".join(map(pointer_text, reversed(move.entries))))
            imgui.pop_style_color()

    def _draw_slot(self, index: int, slot: Slot, box: "np.ndarray") -> None:
        colour = STATE_COLOURS.get(slot.state, theme.DIM)
        _coloured(colour, f"{index}")
        imgui.same_line()
        imgui.text_wrapped(slot_text(slot))
        if slot.state != "empty" and imgui.is_item_hovered():
            imgui.set_tooltip(f"min {numbers(box[0])}\nmax {numbers(box[1])}")


def _draw_pixel(picked: Pick) -> None:
    x, y = picked.pixel
    if picked.surface is None:
        imgui.text_wrapped(f"Pixel {x}, {y}: background")
        return
    seen = picked.surface
    imgui.text_wrapped(
        f"Pixel {x}, {y}: {picked.instance_name} (instance {picked.instance}), "
        f"primitive {picked.primitive}"
    )
    imgui.push_style_color(imgui.Col_.text, theme.opaque(theme.DIM))
    imgui.text_wrapped(
        f"BLAS {picked.blas} {picked.blas_name}, material {seen.material_name or seen.material}, "
        f"{seen.distance:.4g} m away"
    )
    imgui.pop_style_color()
    if picked.note:
        imgui.push_style_color(imgui.Col_.text, theme.opaque(theme.WARNING))
        imgui.text_wrapped(picked.note)
        imgui.pop_style_color()


def _short_result(ray: PixelRay) -> str:
    if ray.any_hit or not ray.hit:
        return ray.result
    instance = ray.traced.bvh.instances[ray.instance]
    return f"t {ray.t:.4g}, {instance.name}"


def _parameters(walk: RayWalk) -> list[tuple[str, str]]:
    """The ray as it was traced, names as the Radeon Raytracing Analyzer has them."""
    ray = walk.ray

    length = float(np.linalg.norm(ray.direction.astype(np.float64)))
    fields = [
        ("ray", ray.kind),
        ("traced as", "any hit" if ray.any_hit else "closest hit"),
        ("origin [m]", numbers(ray.origin)),
        ("direction", f"{numbers(ray.direction)} (length {length:.5g})"),
        ("t min, t max", f"{float(ray.ray['t_min']):g}, {distance(ray.t_max)}"),
        ("instance mask", f"0x{int(ray.constants['RAY_MASK']):02x}"),
        ("ray flags", f"0x{int(ray.constants['RAY_FLAGS']):02x}"),
        ("result", ray.result),
    ]
    if ray.queued is not None:
        fields.append(("queue, slot", f"{ray.index}, {ray.slot}"))
    # What the frame counted; the rest is the oracle's.
    for name, count in {**walk.counts, **ray.counts}.items():
        counted = ", counted by the frame" if name in ray.counts else ""
        fields.append((name.replace("_", " "), f"{count}{counted}"))
    return fields


def _draw_fields(fields: list[tuple[str, str]]) -> None:
    flags = imgui.TableFlags_
    if not imgui.begin_table("##fields", 2, flags.sizing_stretch_prop | flags.no_saved_settings):
        return
    imgui.table_setup_column("name", imgui.TableColumnFlags_.width_fixed)
    imgui.table_setup_column("value")
    for name, value in fields:
        imgui.table_next_row()
        imgui.table_next_column()
        imgui.text_disabled(name)
        imgui.table_next_column()
        imgui.text_wrapped(value)
    imgui.end_table()


def _coloured(colour: theme.Rgb, text: str) -> None:
    imgui.push_style_color(imgui.Col_.text, theme.opaque(colour))
    imgui.text_unformatted(text)
    imgui.pop_style_color()
