"""Timed and counted runs stay apart, and must have traced the same rays."""

from dataclasses import replace
from typing import Any

import pytest

from engine.gpu.errors import CheckFailed
from treeline.measure import MODEL_FRAMES, measure


def test_runs_and_sizes(fake_frame: Any, silent: Any) -> None:
    made: list[tuple[int, int, bool]] = []

    def make(width: int, height: int, count: bool) -> Any:
        made.append((width, height, count))
        return fake_frame(width, height, count)

    result = measure(make, 40, 20, 7, 2, silent)
    sizes = [(40, 20), (20, 10), (30, 15)]
    assert made == [(*size, count) for size in sizes for count in (False, True)]
    assert len(result.main.frames) == 7
    assert [len(run.frames) for run in result.smaller] == [MODEL_FRAMES, MODEL_FRAMES]
    assert result.main.frames[0].rays["reflection"].nodes is None
    assert result.main.counted.rays["reflection"].nodes == 20_000
    assert set(result.main.nodes) == {"reflection", "shadow"}
    assert fake_frame.most_alive == 1
    assert silent.advances == 9 + 2 * (1 + MODEL_FRAMES) + 3


def test_scratch_is_what_the_timed_frame_allocated(fake_frame: Any, silent: Any) -> None:
    allocated = [100]

    def make(width: int, height: int, count: bool) -> Any:
        allocated[0] += 10 * width * height + 7 * count
        return fake_frame(width, height, count)

    assert measure(make, 8, 8, 1, 0, silent, lambda: allocated[0]).scratch_bytes == 640


def test_a_counted_run_with_other_hits_is_refused(fake_frame: Any, silent: Any) -> None:
    def make(width: int, height: int, count: bool) -> Any:
        return fake_frame(width, height, count, "counted" if count else "timed")

    with pytest.raises(CheckFailed, match="differ"):
        measure(make, 8, 8, 1, 0, silent)


def test_a_dropped_record_makes_the_measurement_invalid(fake_frame: Any, silent: Any) -> None:
    class Dropping(fake_frame):
        def run(self, frame_index: int = 0) -> Any:
            return replace(super().run(frame_index), dropped=3, valid=False)

    assert measure(fake_frame, 8, 8, 1, 0, silent).valid
    assert not measure(Dropping, 8, 8, 1, 0, silent).valid


def test_one_pixel_can_be_measured(fake_frame: Any, silent: Any) -> None:
    result = measure(fake_frame, 1, 1, 1, 0, silent)
    assert {(run.width, run.height) for run in result.smaller} == {(1, 1)}
