"""No more frames are unfinished than were allowed."""

from typing import Any

import pytest

from engine.view.frame_fence import FrameFence


@pytest.mark.parametrize("allowed", [0, 2])
def test_frames_in_flight(device: Any, allowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = FrameFence(device, allowed)
    asked: list[int] = []
    poll = fence._ring.poll

    def slow() -> Any:
        """Nothing has arrived the first three times that a frame asks."""
        asked.append(fence._ring.in_flight)
        return [] if len(asked) % 4 else poll()

    monkeypatch.setattr(fence._ring, "poll", slow)
    for _ in range(12):
        encoder = device.wgpu.create_command_encoder()
        fence.encode(encoder)
        device.wgpu.queue.submit([encoder.finish()])
        fence.submitted()
        assert fence._ring.in_flight <= allowed
        assert fence._ring.skipped == 0
    assert max(asked) == allowed + 1
