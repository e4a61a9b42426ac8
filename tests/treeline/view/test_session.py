"""What a session draws, when, and what it says about it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import AdapterError, LimitError
from engine.scene.camera import Camera
from passes.frame_data import FrameData
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from passes.option_list import ViewSettings, find_option
from treeline.view.drawing import CPU_SAMPLES
from treeline.view.session import ViewSession
from treeline.view.settling import SETTLE_S

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


def test_on_a_gpu_frames_follow_each_other_without_a_wait(
    open_session: Open, until: Until, device: Any
) -> None:
    session = open_session(continuous=True)
    until(session, lambda: session.ready)
    until(session, lambda: session.samples > 10)
    assert session.samples <= session.version and not session.idle
    assert session.timed is not None and session.timed.forced_waits == 0
    before = counts(session.counted)["reflection"].nodes
    shown = session.timed

    session.set_camera(moved(session.camera, 1.5), moving=True)
    session.step()
    assert session.samples == 1
    assert session.timed is not None and session.counted is not None  # from a moment ago
    until(session, lambda: session.timed is not shown)
    session.set_camera(session.camera, moving=False)
    until(session, lambda: session.ready and session.samples > 3)
    assert session.drawing is not None
    camera = session.drawing.inputs.camera
    for stats in (session.counted, session.drawing.first, *session.drawing.recent):
        assert stats is not None and stats.inputs is not None and stats.inputs.camera is camera
    assert counts(session.counted)["reflection"].nodes != before


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


def test_a_view_option_needs_no_new_frame(open_session: Open, until: Until, clock: Any) -> None:
    session = open_session()
    until(session, lambda: session.ready)
    assert session.drawing is not None
    frames, rays = session.drawing.frames, counts(session.counted)["reflection"].rays
    session.change(find_option("roughness_cutoff").set(session.settings, 0.05))
    session.step()
    assert session.timed is None and session.moving
    clock.now += SETTLE_S
    until(session, lambda: session.ready)
    assert session.drawing.frames is frames
    assert counts(session.counted)["reflection"].rays == 0 < rays


def test_the_picture_follows_a_slider_that_is_dragged(open_session: Open, until: Until) -> None:
    session = open_session((480, 270))
    until(session, lambda: session.ready)
    shown = session.version
    for step in range(60):
        if step % 3 == 0:
            session.change(find_option("exposure").set(session.settings, 1.0 + step / 20))
        session.set_camera(session.camera, moving=False)  # as the window does in every frame
        session.step()
    assert session.version > shown + 2
    assert session.frame is not None and session.frame.options.width == 240


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
        patch.setattr(HybridFrame, "steps", fail)
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


def test_a_frame_that_cannot_be_mended_says_why(
    open_session: Open, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FrameData, "grow_queues", lambda *arguments: None)
    settings = ViewSettings(frame=FrameOptions(0, 0, queue_fraction=0.01))
    session = open_session(settings=settings)
    until(session, lambda: session.ready)
    assert session.timed is not None and not session.timed.valid
    assert "dropped by full queues" in session.timed.failures[0]
    assert session.document()["context"]["valid"] is False


@pytest.mark.parametrize("continuous", [False, True])
def test_a_frame_without_room_is_drawn_again_with_it(
    open_session: Open, until: Until, continuous: bool
) -> None:
    settings = ViewSettings(frame=FrameOptions(0, 0, queue_fraction=0.01, count=True))
    session = open_session(settings=settings, continuous=continuous)
    until(session, lambda: session.ready and session.samples > 1)
    until(session, lambda: session.counted is not None and session.counted.valid)
    assert session.drawing is not None and session.drawing.first is not None
    assert session.drawing.first.valid


def test_hidden_instances_are_gone_and_measured_anew(open_session: Open, until: Until) -> None:
    settings = ViewSettings(group="object")
    session = open_session(settings=settings)
    until(session, lambda: session.ready)
    before = counts(session.counted)["reflection"]
    assert session.prepared is not None
    floor = session.prepared.object_names.index("floor")
    session.set_hidden(frozenset({floor}))
    assert session.timed is None and session.counted is None
    until(session, lambda: session.ready)
    assert counts(session.counted)["reflection"].rays == 0 < before.rays
    session.change(find_option("gbuffer").set(settings, "rays"))
    until(session, lambda: session.ready)
    assert counts(session.counted)["reflection"].rays == 0  # still hidden
    session.set_hidden(frozenset())
    until(session, lambda: session.ready)
    assert counts(session.counted)["reflection"].rays > 0
    session.set_hidden(frozenset({floor}))
    session.change(find_option("group").set(settings, "all"))
    assert session.hidden == frozenset()


def test_frames_are_made_in_the_background(open_session: Open, until: Until) -> None:
    session = open_session(in_background=True)
    session.step()
    assert session.busy == "compiling kernels" and session.frame is None
    until(session, lambda: session.ready)
    shown = session.frame
    session.change(find_option("sort_shadow").set(session.settings, True))
    session.step()
    assert session.frame is shown and not session.ready
    session.change(find_option("loops").set(session.settings, "two"))
    until(session, lambda: session.ready)
    assert session.frame is not None and session.frame.options.loops == "two"
    assert session.frame.options.sort_shadow


def test_frames_that_are_no_longer_wanted_are_not_waited_for(
    open_session: Open, until: Until
) -> None:
    """Settings go back to what is drawn, as they were or with another seed, while kernels are made
    for others."""
    session = open_session(in_background=True)
    until(session, lambda: session.active is not None)
    before, active = session.settings, session.active
    for back in (before, find_option("seed").set(before, 1)):
        session.change(find_option("hit_table").set(before, "fine"))
        session.step()
        assert session.busy == "compiling kernels"
        session.change(back)
        session.step()
        assert session.busy != "compiling kernels"
    assert active is not None and session.active is not None
    assert session.active.supplied.frames is active.supplied.frames
