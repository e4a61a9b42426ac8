"""What benchmarks.animated_frames makes of its numbers: growth, phases, faults."""

from typing import Any

import numpy as np
import pytest

from benchmarks.animated_frames import GROWTH_LIMIT_MIB, Recorder, faults, phase_ratios, slope
from benchmarks.animated_frames import summary as summarise


def test_slope_sees_growth_and_not_one_step() -> None:
    steps = np.arange(95.0)
    assert slope(200 + 0.02 * steps) == pytest.approx(0.02)
    assert abs(slope(200 + 5.0 * (steps > 90))) < 1e-9  # the allocator took a page more, once
    assert slope(np.array([3.0])) == 0.0


def test_a_phase_is_compared_with_itself() -> None:
    numbers = np.arange(600)
    times = 3.0 + 2.0 * (numbers % 20 >= 10)  # slower in the clip's second half
    assert [row["ratio"] for row in phase_ratios(times, 20)] == [1.0] * 10
    later = times * np.where((numbers >= 400) & (numbers % 20 == 19), 1.5, 1.0)
    later[::7] = np.nan  # passed over
    rows = {row["bin"]: row["ratio"] for row in phase_ratios(later, 20)}
    assert rows[9] > 1.05 and all(rows[i] == 1.0 for i in range(9))


def found(**changes: Any) -> dict[str, Any]:
    recorder = Recorder.of(200, 3)
    recorder.total[:] = 3.0
    recorder.passes[:] = 1.0
    recorder.wall[:] = recorder.thread[:] = recorder.encode[:] = 2.0
    recorder.resident[:] = 400.0 + 0.01 * changes.pop("growth", 0.0) * np.arange(20)
    recorder.objects[:, 1] = np.arange(20) if changes.pop("objects", False) else 7
    names = ("update/tlas", "gbuffer/raster", "traverse/shadow/0")
    return summarise(recorder, names, 10) | {"same_hits": True} | changes


def test_faults() -> None:
    assert faults(found(), on_cpu=False) == []
    whole = found()
    assert whole["gbuffer_ms"]["median"] == 1.0 and whole["without_gbuffer_ms"]["median"] == 2.0
    grown = found(growth=1.01 * GROWTH_LIMIT_MIB)
    assert faults(grown, on_cpu=True) == ["memory grows by 1.01 MiB"]
    assert faults(found(objects=True), on_cpu=True) == ["textures grew from 5 to 19"]
    assert faults(found(same_hits=False), on_cpu=True) == [
        "the first pose hits something else than at first"
    ]
    slow = found(host_wall_ms={"p95": 4.5}, phases=[{"ratio": 0.9}])
    assert faults(slow, on_cpu=True) == []
    assert faults(slow, on_cpu=False) == [
        "frames of one phase differ by 10.0%",
        "the host takes 4.50 ms of a frame (p95)",
    ]
