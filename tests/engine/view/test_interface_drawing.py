"""What the interface draws: colours, images, text that can be read, and at what price."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui, implot

from engine.gpu.device import open_device
from engine.view import marks, theme
from engine.view.window import Window


def test_picture_has_the_colours_that_were_asked_for(open_window: Callable[..., Window]) -> None:
    window = open_window((40, 30))
    assert window.picture().shape == (30, 40, 3), "before the first frame it is empty"

    def draw() -> None:
        imgui.get_background_draw_list().add_rect_filled(
            imgui.ImVec2(10, 5), imgui.ImVec2(20, 15), imgui.get_color_u32((1.0, 0.5, 0.0, 1.0))
        )

    window.draw_once(draw)
    picture = window.picture()
    assert picture.shape == (30, 40, 3) and picture.dtype == np.uint8
    assert np.abs(picture[10, 15] - [255, 127.5, 0]).max() <= 1
    background = np.array(picture[25, 35])
    assert np.array_equal(picture[4, 15], background)
    assert np.array_equal(picture[5, 9], background) and picture[5, 10, 0] == 255
    assert picture[14, 19, 0] == 255 and np.array_equal(picture[15, 20], background)


def checkerboard(device: Any, colour: tuple[int, int, int]) -> Any:
    pixels = np.zeros((8, 8, 4), np.uint8)
    pixels[..., :3] = colour
    pixels[..., 3] = 255
    texture = device.wgpu.create_texture(
        size=(8, 8, 1), format="rgba8unorm", usage="TEXTURE_BINDING|COPY_DST"
    )
    device.wgpu.queue.write_texture(
        {"texture": texture}, pixels, {"bytes_per_row": 32, "rows_per_image": 8}, (8, 8, 1)
    )
    return texture.create_view()


def test_images(open_window: Callable[..., Window], device: Any) -> None:
    window = open_window((64, 64))
    red, green = checkerboard(device, (200, 10, 10)), checkerboard(device, (10, 200, 10))
    assert window.image(red).get_tex_id() == window.image(red).get_tex_id()
    assert window.image(red).get_tex_id() != window.image(green).get_tex_id()

    def draw(*views: Any) -> None:
        for place, view in enumerate(views):
            imgui.get_background_draw_list().add_image(
                window.image(view),
                imgui.ImVec2(32 * place, 0),
                imgui.ImVec2(32 * place + 32, 32),
            )

    window.draw_once(lambda: draw(red, green))
    assert window.picture()[16, 16].tolist() == [200, 10, 10]
    assert window.picture()[16, 48].tolist() == [10, 200, 10]
    window.forget(red)
    # Drawn once more from the frame before: what is gone is left out, what is there stays.
    assert window.picture()[16, 16].tolist() != [200, 10, 10]
    assert window.picture()[16, 48].tolist() == [10, 200, 10]
    window.forget(red)
    window.draw_once(lambda: draw(green))
    assert window.picture()[16, 16].tolist() == [10, 200, 10]


def test_scale_of_the_interface(drive: Callable[..., Any], make_demo: Callable[[], Any]) -> None:
    demo = make_demo()
    user = drive(demo)

    def height() -> float:
        _, top, _, bottom = marks.rectangles["press"]
        return bottom - top

    small = height()
    user.window.ui_scale = 1.5
    user.frames(2)
    assert height() == pytest.approx(1.5 * small, abs=2)
    user.window.ui_scale = 1.0
    user.frames(2)
    assert height() == small, "scaling does not add up"


def test_many_draws_stay_cheap(
    drive: Callable[..., Any], device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crowded() -> None:
        for index in range(60):
            imgui.begin_child(f"child {index}", imgui.ImVec2(40, 20))
            imgui.text(f"{index}")
            imgui.end_child()
            if index % 8 != 7:
                imgui.same_line()
        if implot.begin_plot("plot", imgui.ImVec2(200, 80)):
            implot.plot_line("line", np.arange(100.0))
            implot.end_plot()

    user = drive(crowded)
    made = []
    for kind in ("bind_group", "buffer", "texture", "sampler", "render_pipeline"):
        monkeypatch.setattr(
            type(device.wgpu), f"create_{kind}", lambda *_, kind=kind, **__: made.append(kind)
        )
    begun = time.thread_time()
    user.frames(20)
    assert user.window.interface.backend.draws == 1
    assert made == [], "a frame makes no objects of the device's"
    assert (time.thread_time() - begun) / 20 < 0.02


def test_text_can_be_read(contrast: Callable[..., float]) -> None:
    grounds = [theme.PANEL, theme.FIELD, theme.RAISED]
    for ground in grounds:
        assert contrast(theme.TEXT, ground) > 7
        assert contrast(theme.ERROR, ground) > 4.5
        assert contrast(theme.WARNING, ground) > 4.5
        assert contrast(theme.GOOD, ground) > 4.5
    for ground in grounds[:2]:
        assert contrast(theme.DIM, ground) > 4.5
    assert contrast(theme.TEXT, theme.ACCENT) > 3.5
    assert contrast((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)) == pytest.approx(21.0)


def test_lists_and_clip_rectangles_keep_to_themselves(open_window: Callable[..., Window]) -> None:
    window = open_window((60, 40))
    red, green, blue = (imgui.get_color_u32(c) for c in ((1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1)))

    def draw() -> None:
        below, above = imgui.get_background_draw_list(), imgui.get_foreground_draw_list()
        below.add_rect_filled(imgui.ImVec2(0, 0), imgui.ImVec2(10, 40), red)
        above.push_clip_rect(imgui.ImVec2(20, 0), imgui.ImVec2(30, 20))
        above.add_rect_filled(imgui.ImVec2(0, 0), imgui.ImVec2(60, 40), green)
        above.pop_clip_rect()
        above.push_clip_rect(imgui.ImVec2(40, 0), imgui.ImVec2(60, 40))
        above.add_rect_filled(imgui.ImVec2(0, 10), imgui.ImVec2(60, 40), blue)
        above.pop_clip_rect()

    window.draw_once(draw)
    picture = window.picture()
    assert picture[35, 5].tolist() == [255, 0, 0]
    assert picture[10, 25].tolist() == [0, 255, 0]
    assert picture[25, 25].tolist() == picture[5, 50].tolist() == picture[35, 35].tolist()
    assert picture[35, 50].tolist() == [0, 0, 255]


def test_style_is_the_same_after_an_error_and_another_scale(
    open_window: Callable[..., Window],
) -> None:
    window = open_window((20, 20))

    def sizes() -> list[float]:
        style, plot = imgui.get_style(), implot.get_style()
        return [style.window_min_size.x, style.separator_text_padding.x, plot.plot_padding.x]

    before = sizes()
    window.ui_scale = 2.0
    assert sizes()[0] == 2 * before[0]
    window.ui_scale = 1.0
    assert sizes() == before
    with pytest.raises(ZeroDivisionError):
        window.draw_once(lambda: 1 / 0)
    assert sizes() == before


def test_replaced_device_draws_the_same(
    drive: Callable[..., Any], make_demo: Callable[[], Any]
) -> None:
    demo = make_demo()
    user = drive(demo)
    user.click("text")
    user.type("kept")
    before = user.window.picture()
    other = open_device()
    user.window.replace_device(other)
    assert user.window.device is other
    user.frames()
    assert np.array_equal(user.window.picture(), before)
    view = checkerboard(other, (1, 200, 3))
    user.window.image(view)
    user.click("press")
    assert demo.clicks == 1 and demo.text == "kept"
