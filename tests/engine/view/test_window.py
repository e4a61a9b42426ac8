"""The window offscreen: input, pictures, sizes, latency, lost devices."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui, implot

from engine.gpu.device import open_device
from engine.gpu.errors import AdapterError
from engine.view import marks, theme
from engine.view.interface_input import KEYS, imgui_key
from engine.view.marks import mark
from engine.view.window import Window


class Demo:
    """A button, a slider and a text field, with what became of them."""

    clicks = 0
    value = 0.25
    text = ""

    def __call__(self) -> None:
        if imgui.button("press"):
            self.clicks += 1
        mark("press")
        _, self.value = imgui.slider_float("value", self.value, 0.0, 1.0)
        mark("value")
        _, self.text = imgui.input_text("text", self.text)
        mark("text")


def test_button_slider_and_text(drive: Callable[..., Any]) -> None:
    demo = Demo()
    user = drive(demo)
    user.click("press")
    assert demo.clicks == 1
    user.drag("value", 100)
    assert demo.value > 0.6
    user.click("text")
    user.type("añb 1")
    user.press("Backspace")
    assert demo.text == "añb "
    with pytest.raises(KeyError, match="'gone' is not drawn; marks: press, text, value"):
        marks.centre("gone")


def test_every_key_arrives(open_window: Callable[..., Window]) -> None:
    window = open_window((64, 64))
    seen: list[bool] = []
    for name, key in KEYS.items():
        shown = name.upper() if len(name) == 1 else name  # as a window says it with Shift held
        window.send("key_down", key=shown)
        window.draw_once(lambda key=key: seen.append(imgui.is_key_down(key)))
        window.send("key_up", key=shown)
        window.draw_once(lambda key=key: seen.append(not imgui.is_key_down(key)))
    assert all(seen) and len(seen) == 2 * len(KEYS)
    assert imgui_key("Numpad7") == imgui.Key.keypad7 != imgui_key("7")
    window.send("key_down", key="no such key")
    window.draw_once(lambda: None)


def test_mouse_buttons_wheel_and_modifiers(open_window: Callable[..., Window]) -> None:
    window = open_window((64, 64))
    seen: dict[str, Any] = {}

    def look() -> None:
        io = imgui.get_io()
        seen.update(
            down=[button for button in range(3) if imgui.is_mouse_down(button)],
            wheel=io.mouse_wheel,
            shift=io.key_shift,
            mouse=(io.mouse_pos.x, io.mouse_pos.y),
        )

    for button, expected in ((1, 0), (2, 1), (3, 2)):  # left, right, middle
        window.send("pointer_down", x=10, y=20, button=button)
        window.draw_once(look)
        assert seen["mouse"] == (10, 20)
        window.draw_once(look)  # the button waits for a frame in which the mouse was there
        assert seen["down"] == [expected]
        window.send("pointer_up", x=10, y=20, button=button)
        window.draw_once(look)
        assert seen["down"] == []
    window.send("wheel", x=10, y=20, dy=-100.0)
    window.draw_once(look)
    assert seen["wheel"] == 1.0, "away from the user is up"
    window.send("key_down", key="Shift")
    window.draw_once(look)
    assert seen["shift"]
    window.send("pointer_leave")
    window.draw_once(look)
    assert seen["mouse"][0] < -1e9


def test_same_events_give_the_same_picture(drive: Callable[..., Any]) -> None:
    pictures = []
    for _ in range(2):
        user = drive(Demo())
        user.click("text")
        user.type("abc")
        user.drag("value", 40)
        pictures.append(user.window.picture())
    assert np.array_equal(*pictures)
    assert len(np.unique(pictures[0].reshape(-1, 3), axis=0)) > 20
    before = pictures[0]
    user.click("press")
    assert not np.array_equal(user.window.picture(), before)


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


def test_resize_and_no_area(drive: Callable[..., Any]) -> None:
    demo = Demo()
    user = drive(demo)
    window = user.window
    window.resize(333, 201)
    user.frames()
    assert window.logical_size == (333, 201)
    assert window.picture().shape == (201, 333, 3)
    window._canvas.set_physical_size(0, 0)  # as a minimised window of some systems
    assert not window.visible and not window.draw_once(demo)
    window.send("pointer_move", x=1, y=1)
    assert not window.draw_once(demo)
    window.resize(480, 320)
    user.frames()
    user.click("press")
    assert demo.clicks == 1


def test_pixel_ratio(drive: Callable[..., Any]) -> None:
    demo = Demo()
    user = drive(demo, pixel_ratio=2.0)
    window = user.window
    assert window.logical_size == (480, 320) and window.pixel_size == (960, 640)
    assert window.device_pixels((100.25, 0.1)) == (200, 1)
    fine = window.picture()
    assert fine.shape == (640, 960, 3)
    user.click("press")
    assert demo.clicks == 1, "events count in logical pixels"
    window.set_pixel_ratio(1.0)
    user.frames(2)
    assert window.logical_size == (480, 320) and window.pixel_size == (480, 320)
    coarse = window.picture().astype(float)
    # The same interface, and text drawn at the finer size: not the coarse one blown up.
    shrunk = fine.reshape(320, 2, 480, 2, 3).astype(float).mean((1, 3))
    assert np.abs(shrunk - coarse).mean() < 3
    blown_up = coarse.repeat(2, 0).repeat(2, 1)
    assert np.abs(blown_up - fine).max() > 60


def test_scale_of_the_interface(drive: Callable[..., Any]) -> None:
    demo = Demo()
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


def test_error_in_the_interface_is_raised_and_the_window_goes_on(
    drive: Callable[..., Any],
) -> None:
    demo = Demo()
    user = drive(demo)
    before = user.window.picture()

    def fail() -> None:
        imgui.begin("half")
        imgui.begin_child("built")
        imgui.push_style_color(imgui.Col_.text, (1.0, 0.0, 0.0, 1.0))
        assert implot.begin_plot("plot")
        raise ZeroDivisionError("in the interface")

    with pytest.raises(ZeroDivisionError):
        user.window.draw_once(fail)
    user.frames(2)
    assert np.array_equal(user.window.picture(), before)
    user.click("press")
    assert demo.clicks == 1
    user.window.draw_once(lambda: implot.begin_plot("plot") and implot.end_plot())


def test_replaced_device_draws_the_same(drive: Callable[..., Any]) -> None:
    demo = Demo()
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


def test_lost_device_is_said_in_one_line(open_window: Callable[..., Window]) -> None:
    window = open_window((100, 50))
    lost = open_device()
    window.replace_device(lost)
    window.draw_once(lambda: imgui.text("shown"))
    before = window.picture()
    lost.wgpu.destroy()
    for _ in range(2):
        with pytest.raises(AdapterError, match="the device was lost") as caught:
            window.draw_once(lambda: imgui.text("shown"))
        assert "\n" not in str(caught.value)
    window.replace_device(open_device())
    window.draw_once(lambda: imgui.text("shown"))
    assert np.array_equal(window.picture(), before)


def test_two_windows_do_not_share_state(open_window: Callable[..., Window]) -> None:
    first, second = open_window((100, 100)), open_window((200, 100))
    seen = []
    for window in (first, second, first):
        window.send("pointer_move", x=window.logical_size[0] / 2, y=7)
        window.draw_once(lambda: seen.append(imgui.get_io().mouse_pos.x))
    assert seen == [50, 100, 50]
    first.close()
    assert second.draw_once(lambda: None)


def test_latency_counts_from_the_first_event(open_window: Callable[..., Window]) -> None:
    window = open_window((64, 64))
    window.draw_once(lambda: None)
    assert not window.latency_ms, "no input, no latency"
    window.send("pointer_move", x=1, y=1)
    time.sleep(0.02)
    window.send("pointer_move", x=2, y=2, buttons=(1,))  # not merged with the one before
    window.draw_once(lambda: time.sleep(0.01))
    assert len(window.latency_ms) == 1
    assert 30 <= window.latency_ms[0] < 500
    assert 10 <= window.panel_ms < window.latency_ms[0]
    window.draw_once(lambda: None)
    assert len(window.latency_ms) == 1


def test_frame_does_not_read_the_picture_back(
    open_window: Callable[..., Window], device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window((64, 64))
    window.draw_once(lambda: None)
    before = device.readback_bytes, device.forced_waits
    queue = type(device.wgpu.queue)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a frame read something back")

    for name in ("read_texture", "read_buffer"):
        monkeypatch.setattr(queue, name, refuse)
    window.draw_once(lambda: None)
    assert device.forced_waits == before[1]
    assert device.readback_bytes - before[0] <= 4, "a word says that the frame is done"


def test_run_ends_when_closed_and_works_after_the_present(
    open_window: Callable[..., Window],
) -> None:
    window = open_window((64, 64))
    order: list[str] = []

    def work() -> None:
        order.append(f"work {window.frames}")
        if window.frames == 3:
            window._canvas.close()

    begun = time.perf_counter()
    window.run(lambda: order.append("draw"), work)
    assert order == ["draw", "work 1", "draw", "work 2", "draw", "work 3"]
    assert time.perf_counter() - begun > 2 / 60, "no faster than the screen"
    assert not window.draw_once(lambda: None)


def test_nothing_is_written(
    drive: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    user = drive(Demo())
    user.click("press")
    io = imgui.get_io()
    assert not io.get_ini_filename()
    io.ini_saving_rate = 0.01  # seconds; imgui's own rate is 5
    io.want_save_ini_settings = True
    user.frames(5)
    user.window.close()
    assert os.listdir(tmp_path) == []


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


def test_offscreen_time_goes_by_frames(open_window: Callable[..., Window]) -> None:
    window = open_window((20, 20))
    steps: list[float] = []
    for pause in (0.0, 0.03, 0.0):
        time.sleep(pause)
        window.draw_once(lambda: steps.append(imgui.get_io().delta_time))
    assert steps == pytest.approx([1 / 60] * 3)


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
