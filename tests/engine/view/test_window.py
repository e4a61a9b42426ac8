"""The window offscreen: sizes, time, latency, errors, lost devices."""

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
from engine.view.window import Window


def test_resize_and_no_area(drive: Callable[..., Any], make_demo: Callable[[], Any]) -> None:
    demo = make_demo()
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


def test_pixel_ratio(drive: Callable[..., Any], make_demo: Callable[[], Any]) -> None:
    demo = make_demo()
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


def test_error_in_the_interface_is_raised_and_the_window_goes_on(
    drive: Callable[..., Any], make_demo: Callable[[], Any]
) -> None:
    demo = make_demo()
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
    drive: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_demo: Callable[[], Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    user = drive(make_demo())
    user.click("press")
    io = imgui.get_io()
    assert not io.get_ini_filename()
    io.ini_saving_rate = 0.01  # seconds; imgui's own rate is 5
    io.want_save_ini_settings = True
    user.frames(5)
    user.window.close()
    assert os.listdir(tmp_path) == []


def test_offscreen_time_goes_by_frames(open_window: Callable[..., Window]) -> None:
    window = open_window((20, 20))
    steps: list[float] = []
    for pause in (0.0, 0.03, 0.0):
        time.sleep(pause)
        window.draw_once(lambda: steps.append(imgui.get_io().delta_time))
    assert steps == pytest.approx([1 / 60] * 3)
