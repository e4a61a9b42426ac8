"""What a session draws, when, and what it says about it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import AdapterError, LimitError
from engine.scene.camera import Camera
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from passes.option_list import ViewSettings, find_option
from treeline.view.drawing import CPU_SAMPLES
from treeline.view.session import SETTLE_S, ViewSession

Open = Callable[..., ViewSession]
Until = Callable[..., int]


def counts(stats: FrameStats | None) -> Any:
    assert stats is not None
    return stats.rays


def moved(camera: Camera, x: float) -> Camera:
    transform = camera.transform.copy()
    transform[0, 3] += x
    return replace(camera, transform=transform)


def test_at_rest_frame_zero_is_timed_then_counted_then_refined_until_idle(
    open_session: Open, until: Until
) -> None:
    session = open_session()
    until(session, lambda: session.timed is not None)
    assert session.counted is None and session.samples == 1
    until(session, lambda: session.ready)
    assert session.samples == 1 and session.counted is not None and session.counted.counted
    assert not counts(session.timed)["shadow"].hits and counts(session.counted)["shadow"].hits
    until(session, lambda: session.idle)
    assert session.samples == len(session.history) == CPU_SAMPLES
    last = session.timed
    session.step()
    assert session.timed is last and session.busy is None


def test_counts_are_those_of_frame_zero(open_session: Open, until: Until) -> None:
    session = open_session()
    until(session, lambda: session.idle)
    assert session.active is not None
    options = FrameOptions(*session.active.size, count=True)
    alone = HybridFrame(session.device, session.active.structure.prepared, options).run(0)
    assert counts(session.counted) == alone.rays
    assert session.drawing is not None
    assert counts(session.drawing.first)["shadow"].rays == alone.rays["shadow"].rays


def test_without_counters_nothing_counted_exists(
    open_session: Open, until: Until, no_counts: ViewSettings
) -> None:
    session = open_session(settings=no_counts)
    until(session, lambda: session.ready)
    assert session.counted is None and session.frame_for(counts=True) is None
    assert session.drawing is not None and session.drawing.frames.counted is None
    frames = session.drawing.frames
    session.change(find_option("count").set(session.settings, True))
    until(session, lambda: session.ready)
    assert session.frame_for(counts=True) is not None
    assert session.drawing.frames is frames  # the timed one is not made anew for it
    session.change(no_counts)
    until(session, lambda: session.ready)
    assert frames.counted is None and session.counted is None


def test_a_moving_camera_draws_small_frames_and_rest_the_whole(
    open_session: Open, until: Until, clock: Any
) -> None:
    session = open_session((480, 270))
    session.set_camera(moved(session.camera, 0.1), moving=True)
    until(session, lambda: session.frame is not None)
    assert session.frame is not None
    assert (session.frame.options.width, session.frame.options.height) == (240, 135)
    assert session.timed is None and not session.history
    steps = until(session, lambda: session.drawing is not None and session.samples == 0)
    assert steps == 0
    clock.now += SETTLE_S
    until(session, lambda: session.timed is not None)
    assert session.frame.options.width == 480


def test_numbers_never_outlive_their_camera(open_session: Open, until: Until) -> None:
    session = open_session()
    until(session, lambda: session.ready)
    before = counts(session.counted)["reflection"].nodes
    session.set_camera(moved(session.camera, 1.5), moving=False)
    assert session.timed is None and session.counted is None and session.samples == 0
    until(session, lambda: session.ready)
    assert counts(session.counted)["reflection"].nodes != before


def test_on_a_gpu_every_step_draws_and_refines(open_session: Open, until: Until) -> None:
    session = open_session(continuous=True)
    until(session, lambda: session.ready)
    samples = session.samples
    for _ in range(5):
        session.step()
    assert session.samples == samples + 5 and not session.idle
    session.set_camera(moved(session.camera, 0.2), moving=True)
    session.step()
    assert session.samples == 1 and session.timed is not None


def test_picture_refines_to_the_mean_of_its_samples(open_session: Open, until: Until) -> None:
    session = open_session()
    until(session, lambda: session.samples == 3)
    assert session.frame is not None and session.active is not None
    alone = HybridFrame(
        session.device, session.active.structure.prepared, FrameOptions(*session.active.size)
    )
    alone.render(3)
    until(session, lambda: session.samples >= 3)
    assert np.array_equal(session.frame.image(), alone.image())


def test_a_view_option_needs_no_new_frame(open_session: Open, until: Until) -> None:
    session = open_session()
    until(session, lambda: session.ready)
    assert session.drawing is not None
    frames, rays = session.drawing.frames, counts(session.counted)["reflection"].rays
    session.change(find_option("roughness_cutoff").set(session.settings, 0.05))
    until(session, lambda: session.ready)
    assert session.drawing.frames is frames
    assert counts(session.counted)["reflection"].rays == 0 < rays


def test_a_frame_option_keeps_the_scene_and_a_build_option_does_not(
    open_session: Open, until: Until
) -> None:
    session = open_session()
    until(session, lambda: session.ready)
    assert session.active is not None
    scene = session.active.scene
    session.change(find_option("gbuffer").set(session.settings, "rays"))
    until(session, lambda: session.ready)
    assert session.active.scene is scene and session.timed is not None
    assert "gbuffer/rays" in session.timed.passes
    pinned = session.settings
    session.change(find_option("builder").set(session.settings, "sah"))
    until(session, lambda: session.ready)
    assert session.active.scene is not scene
    session.change(pinned)
    until(session, lambda: session.ready)
    assert session.active.scene is scene  # A and B stay


def test_a_size_is_taken_up_once_it_lasts(open_session: Open, until: Until, clock: Any) -> None:
    session = open_session()
    until(session, lambda: session.ready)
    shown = session.frame
    for width in (30, 31, 32):
        session.resize(width, 20)
        clock.now += 0.05
        session.step()
        assert session.frame is shown and not session.ready
    clock.now += 0.2
    until(session, lambda: session.ready)
    assert session.frame is not None and session.frame.options.width == 32


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (LimitError("the queue needs 9 bytes, there are 8"), "limit"),
        (AdapterError("the device was lost"), "device"),
    ],
)
def test_an_error_leaves_no_numbers_and_can_be_retried(
    open_session: Open,
    until: Until,
    device: Any,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kind: str,
) -> None:
    opened: list[Any] = []

    def new_device() -> Any:
        opened.append(device)
        return device

    session = open_session(new_device=new_device)
    until(session, lambda: session.ready)

    def fail(*arguments: Any) -> FrameStats:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(HybridFrame, "run", fail)
        session.step()
    assert session.error is not None
    assert (session.error.kind, session.error.message) == (kind, str(error))
    assert session.timed is None and session.counted is None and not session.ready
    assert (session.frame is None) == (kind == "device")
    session.step()
    assert session.timed is None
    session.retry()
    until(session, lambda: session.ready)
    assert len(opened) == (kind == "device")


def test_a_picture_beyond_the_adapter_is_an_error_with_both_sizes(open_session: Open) -> None:
    session = open_session((100_000, 10))
    for _ in range(3):
        session.step()
    assert session.error is not None and session.error.kind == "limit"
    assert "100000x10" in session.error.message
    assert session.frame is None and session.timed is None


def test_a_frame_that_dropped_rays_says_so(open_session: Open, until: Until) -> None:
    settings = ViewSettings(frame=FrameOptions(0, 0, queue_fraction=0.01))
    session = open_session(settings=settings)
    until(session, lambda: session.timed is not None)
    assert session.timed is not None and not session.timed.valid
    assert "dropped by full queues" in session.timed.failures[0]
