"""Frames that nobody waits for: whose numbers are whose, with frames that come back late."""

from collections import deque
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from engine.scene.camera import Camera
from passes.frame_stats import FrameStats
from passes.frame_uniforms import FrameInputs
from passes.light_history import OTHER_FRAMES
from treeline.view.drawing import COUNT_EVERY, MOST_REDRAWS, Drawing
from treeline.view.view_point import ViewPoint

LATE = 3  # polls until a frame has come back


@dataclass
class LateFrame:
    """A frame whose statistics arrive LATE polls after it was submitted."""

    valid: bool = True
    sent: list[FrameInputs] = field(default_factory=list)
    flying: deque[FrameInputs | None] = field(default_factory=deque)

    def submit(self, frame_index: int, sample_count: int, inputs: FrameInputs) -> bool:
        inputs = replace(inputs, frame_index=frame_index, sample_count=sample_count)
        self.sent.append(inputs)
        self.flying.append(inputs)
        return True

    def poll(self) -> Any:
        if len(self.flying) < LATE:
            return None
        inputs = self.flying.popleft()
        return SimpleNamespace(inputs=inputs, valid=self.valid)


@dataclass
class Frames:
    timed: LateFrame = field(default_factory=LateFrame)
    counted: LateFrame | None = field(default_factory=LateFrame)


def inputs_of(camera: Camera) -> FrameInputs:
    light: Any = None
    return ViewPoint(camera).inputs({"light": light, "environment": light})


@pytest.fixture
def camera(small_scene: Any) -> Camera:
    return small_scene.camera


def make(camera: Camera, frames: Any) -> tuple[Drawing, deque[FrameStats]]:
    history: deque[FrameStats] = deque(maxlen=50)
    return Drawing(frames, inputs_of(camera), history, continuous=True), history


def test_frame_zero_is_drawn_until_its_numbers_come_then_the_picture_refines(
    camera: Camera,
) -> None:
    frames = Frames()
    drawing, history = make(camera, frames)
    for _ in range(8):
        drawing.step(moving=False)
    indices = [sent.frame_index for sent in frames.timed.sent]
    counts = [sent.sample_count for sent in frames.timed.sent]
    assert indices == [0, 0, 0, 1, 2, 3, 4, 5] and counts == [1, 1, 1, 2, 3, 4, 5, 6]
    assert drawing.samples == 6 and len(history) == 5
    assert drawing.first is not None and drawing.first.inputs is not None
    assert drawing.first.inputs.frame_index == 0
    assert frames.counted is not None
    assert [sent.frame_index for sent in frames.counted.sent] == [0, 0, 0]


def test_numbers_of_another_view_are_dropped_at_rest(camera: Camera) -> None:
    """Even of one with the same camera: something else may have changed."""
    frames = Frames()
    drawing, history = make(camera, frames)
    for _ in range(6):
        drawing.step(moving=False)
    seen = len(history)
    drawing.look(inputs_of(camera), moving=False)
    assert drawing.timed is None and drawing.counted is None and not drawing.recent
    for step in range(LATE + 1):
        drawing.step(moving=False)
        assert (drawing.timed is not None) == (step == LATE), step
    assert len(history) == seen + 1
    assert drawing.timed is not None and drawing.timed.inputs is not None
    assert drawing.timed.inputs.camera is drawing.inputs.camera


def test_frames_that_remember_others_have_their_own_random_numbers(camera: Camera) -> None:
    """While the view moves; at rest the first is frame 0, as it is without."""
    frames: Any = Frames()
    inputs = inputs_of(camera)
    drawing = Drawing(frames, inputs, deque(), continuous=True, new_numbers=True)
    for _ in range(5):
        drawing.look(inputs_of(camera), moving=True)
        drawing.step(moving=True)
    moving = [sent.frame_index for sent in frames.timed.sent]
    assert len(set(moving)) == 5 and min(moving) >= OTHER_FRAMES
    assert {sent.sample_count for sent in frames.timed.sent} == {1}
    drawing.step(moving=False)
    assert frames.timed.sent[-1].frame_index == 0
    # Their probe may be behind; that of a picture at rest is where `treeline report` has it.
    assert [sent.camera_moves for sent in frames.timed.sent] == [True] * 5 + [False]


def test_while_the_view_moves_numbers_of_a_moment_ago_stay(camera: Camera) -> None:
    frames = Frames()
    drawing, _ = make(camera, frames)
    for _ in range(6):
        drawing.step(moving=False)
    assert frames.counted is not None
    before = len(frames.counted.sent)
    for _ in range(2 * COUNT_EVERY):
        drawing.look(inputs_of(camera), moving=True)
        drawing.step(moving=True)
        assert drawing.timed is not None and drawing.counted is not None
        assert drawing.samples == 1
    assert len(frames.counted.sent) == before + 2
    drawing.step(moving=False)  # at rest only numbers of this very view count
    assert drawing.counted is None and not drawing.recent


def test_a_frame_that_stays_invalid_is_not_drawn_for_ever(camera: Camera) -> None:
    frames = Frames(LateFrame(valid=False), None)
    drawing, _ = make(camera, frames)
    for _ in range(MOST_REDRAWS + LATE + 4):
        drawing.step(moving=False)
    assert drawing.samples > 1 and drawing.first is not None and not drawing.first.valid
    assert drawing.measured
