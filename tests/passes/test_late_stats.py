"""Statistics that are worked out when somebody looks are the same, and hold no buffer."""

import gc
import pickle
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.frame.frame import times_of
from passes import frames_in_flight
from passes.frame_data import FrameData
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from passes.queue import QUEUE_HEADER
from passes.read_back import read_counts, read_ticks, read_times
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


def late(asked: list[str], **known: Any) -> FrameStats:
    """`whole()` in two stages, which say that they were asked."""
    fields = {name: getattr(whole(), name) for name in FrameStats.__slots__ if name[0] != "_"}
    times = {name: fields.pop(name) for name in ("passes", "frame_total_ms")}

    def stage(name: str, found: dict[str, Any]) -> dict[str, Any]:
        asked.append(name)
        return found

    return FrameStats.later(lambda: stage("times", times), lambda: stage("rest", fields), **known)


def test_stages_are_called_once_and_only_for_what_is_not_known() -> None:
    asked: list[str] = []
    stats = late(asked, valid=True, failures=())
    assert stats.valid and not stats.stack_overflow and not asked
    assert stats.passes == {"gbuffer": 1.5} and stats.frame_total_ms == 2.0 and asked == ["times"]
    assert stats.readback_bytes == 8 and asked == ["times", "rest"]
    assert stats == whole() and asked == ["times", "rest"]
    with pytest.raises(AttributeError, match="no_such"):
        _ = stats.no_such


@pytest.mark.parametrize("use", [repr, pickle.dumps, lambda stats: replace(stats, cpu_ms=1.0)])
def test_they_can_stand_for_the_others(use: Any) -> None:
    stats = late([], valid=True)
    assert use(stats) == use(whole()) and stats == whole()


def test_ticks_without_numpy_are_the_same_times(rng: Any) -> None:
    names = ("a", "b", "c")
    ticks = np.sort(rng.integers(1 << 40, (1 << 40) + 10**6, 6)).astype(np.uint64)
    ticks[3:5] = ticks[4:2:-1]  # passes that overlap
    found = read_ticks(names, ticks.tolist(), 1.25, 0.5)
    expected = read_times(times_of(names, ticks, 1.25, 0.5))
    assert list(found) == list(expected) and list(found["passes"]) == [*names]
    for name in ("passes", "begins"):
        rows = [v.values() if isinstance(v, dict) else v for v in (found[name], expected[name])]
        np.testing.assert_allclose(*map(list, rows), rtol=1e-12, atol=1e-12)
    for name in ("frame_total_ms", "frame_gaps_ms", "cpu_ms"):
        assert found[name] == pytest.approx(expected[name], rel=1e-9, abs=1e-12)


def test_frames_that_nobody_looks_at_are_not_read(
    device: Any, room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counting(*args: Any) -> dict[str, Any]:
        read.append(1)
        return read_counts(*args)

    monkeypatch.setattr(frames_in_flight, "read_counts", counting)
    frame = HybridFrame(device, room, FrameOptions(*SIZE, count=True))
    frame.submit()
    stats = wait_for(frame)
    assert stats.counted and stats.valid and stats.inputs is not None and not read
    data = weakref.ref(frame.data)
    expected = frame.run()  # waits, and is of the same frame
    assert stats.frame_total_ms is not None and not read
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
