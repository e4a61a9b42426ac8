"""The interface's draws against the plain way: a draw and a scissor rectangle for each command."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui, implot

from engine.view.interface import BACKGROUND
from engine.view.interface_backend import InterfaceBackend
from engine.view.panels.table import Column, Table
from engine.view.window import Window

PLAIN = """
struct Screen { scale: vec2f, shift: vec2f }
@group(0) @binding(0) var<uniform> screen: Screen;
@group(0) @binding(1) var linear_sampler: sampler;
@group(0) @binding(2) var picture: texture_2d<f32>;
struct Varying {
    @builtin(position) place: vec4f, @location(0) uv: vec2f, @location(1) colour: vec4f,
}
@vertex fn corner(@location(0) p: vec2f, @location(1) uv: vec2f, @location(2) c: vec4f) -> Varying {
    return Varying(vec4f(p * screen.scale + screen.shift, 0.0, 1.0), uv, c);
}
@fragment fn shade(in: Varying) -> @location(0) vec4f {
    return in.colour * textureSampleLevel(picture, linear_sampler, in.uv, 0.0);
}
"""


def draw_plainly(
    backend: InterfaceBackend, draw_data: Any, scope: Any, size: tuple[int, int]
) -> int:
    """Encodes imgui's example: each list with its own buffers, each command with its scissor.
    Returns the number of draws. Textures are the backend's."""
    device = backend._device
    module = device.create_shader_module(code=PLAIN)
    blend = {"src_factor": "one", "dst_factor": "one-minus-src-alpha"}
    target = {
        "format": "rgba8unorm",
        "blend": {"color": blend | {"src_factor": "src-alpha"}, "alpha": blend},
    }
    kinds = (("float32x2", 0), ("float32x2", 8), ("unorm8x4", 16))
    attributes = [
        {"format": kind, "offset": offset, "shader_location": place}
        for place, (kind, offset) in enumerate(kinds)
    ]
    pipeline = device.create_render_pipeline(
        layout="auto",
        vertex={
            "module": module,
            "entry_point": "corner",
            "buffers": [{"array_stride": imgui.VERTEX_SIZE, "attributes": attributes}],
        },
        primitive={"topology": "triangle-list"},
        fragment={"module": module, "entry_point": "shade", "targets": [target]},
    )
    area, (left, top) = draw_data.display_size, draw_data.display_pos
    scale = np.array([2 / area.x, -2 / area.y])
    shift = np.array([-1, 1]) - scale * [left, top]
    screen = np.concatenate([scale, shift]).astype(np.float32)
    uniform = device.create_buffer_with_data(data=screen, usage="UNIFORM")
    ratio = draw_data.framebuffer_scale
    scope.set_pipeline(pipeline)
    draws = 0
    for made in draw_data.cmd_lists:
        if not made.vtx_buffer.size():
            continue
        for data, item, usage in (
            (made.vtx_buffer, imgui.VERTEX_SIZE, "VERTEX"),
            (made.idx_buffer, imgui.INDEX_SIZE, "INDEX"),
        ):
            packed = ctypes.string_at(data.data_address(), data.size() * item)
            buffer = device.create_buffer_with_data(data=packed, usage=usage)
            if usage == "VERTEX":
                scope.set_vertex_buffer(0, buffer)
            else:
                scope.set_index_buffer(buffer, "uint32")
        for command in made.cmd_buffer:
            clip = command.clip_rect
            x0, y0 = (max(0, int(v)) for v in ((clip.x - left) * ratio.x, (clip.y - top) * ratio.y))
            x1 = min(size[0], int((clip.z - left) * ratio.x))
            y1 = min(size[1], int((clip.w - top) * ratio.y))
            if x1 <= x0 or y1 <= y0 or not command.elem_count:
                continue
            entries = [
                {"binding": 0, "resource": {"buffer": uniform}},
                {"binding": 1, "resource": backend._sampler},
                {"binding": 2, "resource": backend._views[command.tex_ref.get_tex_id()]},
            ]
            group = device.create_bind_group(
                layout=pipeline.get_bind_group_layout(0), entries=entries
            )
            scope.set_bind_group(0, group)
            scope.set_scissor_rect(x0, y0, x1 - x0, y1 - y0)
            scope.draw_indexed(command.elem_count, 1, command.idx_offset, command.vtx_offset, 0)
            draws += 1
    return draws


class Crowd:
    """Windows, lists that scroll, tables with frozen rows, a plot, images among text."""

    def __init__(self) -> None:
        self.images: list[Any] = []
        self.table = Table("rows", (Column("name", text=True), Column("n"), Column("m")))
        self.table.set_columns([[f"row {i}" for i in range(50)], range(50), range(50)])

    def __call__(self) -> None:
        imgui.set_next_window_pos((-20.3, -7.6))
        imgui.set_next_window_size((230.5, 190.7))
        imgui.begin("left", None, imgui.WindowFlags_.no_scrollbar)
        for number in range(5):
            imgui.begin_child(f"child {number}", (57.3 + number, 41.7))
            imgui.text_unformatted("too wide for this child\nand too\nhigh\nas well")
            imgui.end_child()
            imgui.same_line(0.0, 1.3)
        imgui.new_line()
        self.table.draw((190.0, 80.0))
        imgui.end()
        imgui.set_next_window_pos((170.2, 40.4))
        imgui.set_next_window_size((140.0, 170.9))
        imgui.begin("right")
        for number in range(4):
            imgui.text(f"before {number}")
            imgui.image(self.images[number % 2], (150.0, 9.0))
        if implot.begin_plot("plot", imgui.ImVec2(110, 70)):
            implot.plot_line("line", np.sin(np.arange(60.0)))
            implot.end_plot()
        imgui.end()


def texture_of(device: Any, colour: tuple[int, int, int]) -> Any:
    texture = device.wgpu.create_texture(
        size=(2, 2, 1), format="rgba8unorm", usage="TEXTURE_BINDING|COPY_DST"
    )
    data = np.array([[(*colour, 255), (9, 9, 9, 255)], [(9, 9, 9, 128), (*colour, 255)]], np.uint8)
    device.wgpu.queue.write_texture(
        {"texture": texture}, data, {"bytes_per_row": 8, "rows_per_image": 2}, (2, 2, 1)
    )
    return texture.create_view()


@pytest.mark.parametrize("ratio", [1.0, 1.25])
def test_pictures_are_those_of_scissors(
    device: Any,
    open_window: Callable[..., Window],
    monkeypatch: pytest.MonkeyPatch,
    ratio: float,
) -> None:
    window = open_window((300, 200), pixel_ratio=ratio)
    crowd = Crowd()
    crowd.images = [
        window.image(texture_of(device, colour)) for colour in ((250, 20, 30), (20, 30, 250))
    ]
    for _ in range(4):
        window.draw_once(crowd)
    picture = window.picture()
    backend = window.interface.backend
    draws = backend.draws
    plain: list[int] = []

    def render(draw_data: Any, scope: Any) -> None:
        plain.append(draw_plainly(backend, draw_data, scope, window.pixel_size))

    def begin(encoder: Any, view: Any) -> Any:
        """wgpu's own, which has vertex buffers and scissors."""
        target = {"view": view, "load_op": "clear", "clear_value": BACKGROUND, "store_op": "store"}
        return encoder.begin_render_pass(color_attachments=[target])

    monkeypatch.setattr(backend, "render", render)
    monkeypatch.setattr(window.interface._passes, "begin", begin)
    expected = window.picture()
    assert len(np.unique(expected.reshape(-1, 3), axis=0)) > 100
    np.testing.assert_array_equal(picture, expected)
    assert draws == 9, "four images among text; commands of one texture are one draw"
    assert plain[0] > 2 * draws


def test_an_image_that_was_forgotten_is_left_out(
    device: Any, open_window: Callable[..., Window]
) -> None:
    window = open_window((60, 40))
    views = [texture_of(device, colour) for colour in ((255, 0, 0), (0, 255, 0))]
    corners = ((0.0, 0.0), (30.0, 0.0))

    def draw() -> None:
        for view, (x, y) in zip(views, corners, strict=True):
            imgui.get_background_draw_list().add_image(
                window.image(view), (x, y), (x + 30, y + 40), (0.0, 0.0), (0.1, 0.1)
            )

    window.draw_once(draw)
    assert window.picture()[20, [10, 40]].tolist() == [[255, 0, 0], [0, 255, 0]]
    window.forget(views[0])
    left, right = window.picture()[20, [10, 40]].tolist()
    assert (left, right) == (window.picture()[39, 0].tolist(), [0, 255, 0])
    assert left != [255, 0, 0]


def test_a_frame_of_any_length_has_room(open_window: Callable[..., Window]) -> None:
    window = open_window((64, 64))
    white = imgui.get_color_u32((1.0, 1.0, 1.0, 1.0))

    def draw(count: int) -> None:
        below = imgui.get_background_draw_list()
        for number in range(count):
            x, y = number % 64, number // 64 % 64
            below.add_rect_filled((x, y), (x + 1, y + 1), white)

    for count in (64, 4096, 640, 8):
        window.draw_once(lambda count=count: draw(count))
        assert (window.picture() == 255).all(axis=-1).sum() == count
