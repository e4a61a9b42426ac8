"""No more frames are unfinished than were allowed."""

import time
from typing import Any

import pytest

from engine.gpu.submitted_work import SubmittedWork
from engine.view.frame_fence import FrameFence


class SlowWork:
    """A device that ends a frame only each fourth time that somebody asks."""

    def __init__(self) -> None:
        self.unfinished = 0
        self.asked: list[int] = []

    def mark(self) -> None:
        self.unfinished += 1

    def poll(self) -> None:
        self.asked.append(self.unfinished)
        if len(self.asked) % 4 == 0:
            self.unfinished -= 1


@pytest.mark.parametrize("allowed", [0, 2])
def test_frames_in_flight(device: Any, allowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = FrameFence(device, allowed)
    work = SlowWork()
    monkeypatch.setattr(fence, "_work", work)
    waits = []
    for _ in range(8):
        fence.submitted()
        assert work.unfinished <= allowed
        waits.append(fence.waited_ms > 0)
    assert set(work.asked) == {allowed + 1}
    assert waits == [False] * allowed + [True] * (8 - allowed)


def test_what_was_submitted_ends_once(device: Any) -> None:
    work = SubmittedWork(device)
    for _ in range(3):
        device.wgpu.queue.submit([device.wgpu.create_command_encoder().finish()])
        work.mark()
    assert 1 <= work.unfinished <= 3
    device.wait()
    end = time.perf_counter() + 60
    while work.unfinished and time.perf_counter() < end:
        work.poll()
    assert work.unfinished == 0
    work.poll()
    assert work.unfinished == 0


def test_work_that_its_owner_has_forgotten(device: Any) -> None:
    work, other = SubmittedWork(device), SubmittedWork(device)
    work.mark()
    del work
    other.mark()
    device.wait()
    other.poll()
    assert other.unfinished == 0
