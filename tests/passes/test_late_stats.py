"""Statistics that are worked out when somebody looks are the same, and hold no buffer."""

import gc
import pickle
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from passes import frames_in_flight
from passes.frame_data import FrameData
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from passes.queue import QUEUE_HEADER
from passes.statistics_buffers import StatisticsBuffers
from tests.passes.test_frames_in_flight import wait_for

SIZE = (24, 16)


def whole(**changes: Any) -> FrameStats:
    fields: dict[str, Any] = {
        "passes": {"gbuffer": 1.5},
        "frame_total_ms": 2.0,
        "frame_gaps_ms": 0.5,
        "cpu_ms": 0.25,
        "rays": {},
        "objects": {},
        "dropped": 0,
        "valid": True,
        "counted": False,
        "upload_bytes": 4,
        "readback_bytes": 8,
        "forced_waits": 0,
        "timing_source": "timestamp-query",
        "begins": (0.0,),
    }
    return FrameStats(**fields | changes)


def test_they_are_collected_once_and_only_for_what_is_not_known() -> None:
    asked: list[int] = []

    def collect() -> FrameStats:
        asked.append(1)
        return whole()

    late = FrameStats.later(collect, valid=True, dropped=0, failures=(), counted=False, inputs=None)
    assert late.valid and not late.dropped and not late.stack_overflow and not asked
    assert late.passes == {"gbuffer": 1.5} and late.frame_total_ms == 2.0 and len(asked) == 1
    assert late == whole() and len(asked) == 1
    with pytest.raises(AttributeError, match="no_such"):
        _ = late.no_such


@pytest.mark.parametrize("use", [repr, pickle.dumps, lambda stats: replace(stats, cpu_ms=1.0)])
def test_they_can_stand_for_the_others(use: Any) -> None:
    late = FrameStats.later(whole, valid=True)
    expected = use(whole())
    assert use(late) == expected and late == whole()


def test_frames_that_nobody_looks_at_are_not_read(
    device: Any, room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    collect = frames_in_flight.collect_stats

    def counting(*args: Any) -> FrameStats:
        read.append(1)
        return collect(*args)

    monkeypatch.setattr(frames_in_flight, "collect_stats", counting)
    frame = HybridFrame(device, room, FrameOptions(*SIZE, count=True))
    frame.submit()
    stats = wait_for(frame)
    assert stats.counted and stats.valid and stats.inputs is not None and not read
    data = weakref.ref(frame.data)
    expected = frame.run()  # waits, and is of the same frame
    del frame
    gc.collect()
    assert data() is None, "what was not read yet keeps the frame's buffers"
    assert stats.rays == expected.rays and stats.objects == expected.objects and read == [1]


def test_what_went_wrong_is_seen_at_once(device: Any, room: Any) -> None:
    frame = HybridFrame(device, room, FrameOptions(*SIZE))
    data: FrameData = frame.data
    layout = StatisticsBuffers(data).layout
    assert not layout.troubled(bytes(layout.size))
    for field, trouble in (("dropped", True), ("failed", True), ("count", False), ("hits", False)):
        for item in layout.items:
            words = {i.name: np.zeros(i.count, i.dtype) for i in layout.items}
            if item.dtype != QUEUE_HEADER.dtype:
                continue
            words[item.name][field] = 1
            packed = b"".join(part.tobytes() for part in words.values())
            assert layout.troubled(packed) is trouble, (item.name, field)
    words = {i.name: np.zeros(i.count, i.dtype) for i in layout.items}
    words["primary_failed"][0] = 2
    assert layout.troubled(b"".join(part.tobytes() for part in words.values()))
