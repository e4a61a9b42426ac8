"""Passes in parts: every unit once, sizes that follow the measured cost, frames in steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.frame.frame import Frame, FrameTimes
from engine.frame.parts import PartSizes, part_attachments
from engine.frame.render_pass import Pass, stage_pass
from engine.gpu.stage import Stage

# Counts how often a group ran: 8 groups a row where the dispatch is (x, y).
COUNT = """
struct Place { words: vec4u }
@group(0) @binding(0) var<uniform> place: Place;
@group(0) @binding(1) var<storage, read_write> runs: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u) {
    runs[(place.words.y + group.y) * 8u + place.words.x + group.x] += 1u;
}
"""


@pytest.fixture
def count(device: Any, tmp_path: Path) -> Stage:
    path = tmp_path / "count.wgsl"
    path.write_text(COUNT)
    return Stage(device, "count", str(path))


def finish(steps: Any) -> tuple[list[float], FrameTimes]:
    took = []
    while True:
        try:
            took.append(next(steps))
        except StopIteration as ended:
            return took, ended.value


def resources(device: Any, groups: int) -> dict[str, Any]:
    return {
        "place": device.buffer("place", 16, "UNIFORM|COPY_DST|COPY_SRC"),
        "runs": device.buffer("runs", 4 * 96),
        "other": device.buffer("other", 4 * 96),
        "counts": device.upload(
            "counts", np.array([groups, 1, 1], np.uint32), "INDIRECT|COPY_SRC|COPY_DST"
        ),
    }


def passes(count: Stage) -> list[Pass]:
    """Rows of 8 groups; groups by a count; a pass without parts."""
    rows = stage_pass("rows", count, (8, 5), first_unit=("place", 4))
    queue = stage_pass(
        "queue", count, arguments="counts", bind={"runs": "other"}, first_unit=("place", 0)
    )
    return [rows, queue, stage_pass("whole", count, (8, 12))]


@pytest.mark.parametrize("budget_ms", [0.0, 0.4, 1e6])
def test_every_unit_runs_once_whatever_the_budget(
    device: Any, count: Stage, budget_ms: float
) -> None:
    given = resources(device, 37)
    frame = Frame(
        device,
        passes(count),
        given,
        given=["place", "counts"],
        cleared={"runs": None, "other": None},
    )
    for _ in range(2):
        took, times = finish(frame.steps(budget_ms))
        runs, other = (device.read(given[name]) for name in ("runs", "other"))
        assert runs[:40].tolist() == [2] * 40 and runs[40:].tolist() == [1] * 56
        assert other[:37].tolist() == [1] * 37 and not other[37:].any()
        assert not device.read(given["place"]).any()  # so that other passes find zeros
    parts = {0.0: 5 + 37 + 1, 1e6: 1}.get(budget_ms, len(took) + 1)
    assert len(took) + 1 == parts
    spans = times.spans_ms
    assert times.names == ("rows", "queue", "whole")
    assert (spans[1:, 0] == spans[:-1, 1]).all() and times.gaps_ms == pytest.approx(0)
    assert times.total_ms > 0 and all(ms > 0 for ms in took)


def test_a_queue_without_rays_takes_no_submission(device: Any, count: Stage) -> None:
    given = resources(device, 0)
    frame = Frame(device, passes(count), given, given=["place", "counts", "runs", "other"])
    _, times = finish(frame.steps(1e6))
    assert times.passes_ms["queue"] == 0 and not device.read(given["other"]).any()


def test_a_frame_may_be_left_and_run_again(device: Any, count: Stage) -> None:
    given = resources(device, 37)
    frame = Frame(
        device,
        passes(count),
        given,
        given=["place", "counts"],
        cleared={"runs": None, "other": None},
    )
    steps = frame.steps(0.0)
    for _ in range(9):
        next(steps)
    steps.close()
    frame.run()
    assert device.read(given["runs"])[:40].tolist() == [2] * 40
    assert device.read(given["other"])[:37].tolist() == [1] * 37


def test_a_pass_takes_the_sum_of_its_parts(device: Any, count: Stage, monkeypatch: Any) -> None:
    given = resources(device, 37)
    frame = Frame(device, passes(count), given, given=["place", "counts", "runs", "other"])
    monkeypatch.setattr(frame, "_finish", lambda encoder: (7.0, 7.002))
    _, times = finish(frame.steps(0.0))
    expected = {"rows": 5 * 2.0, "queue": 37 * 2.0, "whole": 2.0}
    assert times.passes_ms == pytest.approx(expected)
    assert times.total_ms == pytest.approx(86.0) == times.wait_ms


def test_part_sizes_fill_the_room() -> None:
    sizes = PartSizes()
    assert sizes.choose("a", 6400, 0, 30.0) == 100  # nothing known
    assert sizes.choose("a", 10, 0, 30.0) == 1
    sizes.measured("a", 100, 5.0)  # 0.05 ms a unit
    assert sizes.unit_ms("a") == pytest.approx(0.05) and sizes.unit_ms("b") == 0
    assert sizes.choose("a", 6400, 0, 30.0) == 600
    assert sizes.choose("a", 6400, 100, 30.0) == 200  # at most twice the one before
    assert sizes.choose("a", 6400, 0, 0.0) == sizes.choose("a", 6400, 0, -1.0) == 1
    sizes.measured("a", 100, 20.0)  # dearer: at once
    assert sizes.unit_ms("a") == pytest.approx(0.2)
    sizes.measured("a", 100, 10.0)  # cheaper: half the way
    assert sizes.unit_ms("a") == pytest.approx(0.15)
    assert sizes.choose("b", 64, 0, 30.0) == 1  # passes do not share what they cost


def test_only_the_first_part_clears_and_only_the_last_discards() -> None:
    whole: dict[str, Any] = {
        "color_attachments": [{"view": 1, "load_op": "clear", "store_op": "store"}],
        "depth_stencil_attachment": {
            "view": 2,
            "depth_load_op": "clear",
            "depth_store_op": "discard",
        },
    }

    def ops(first: bool, last: bool) -> list[str]:
        part = part_attachments(whole, first, last)
        color, depth = part["color_attachments"][0], part["depth_stencil_attachment"]
        assert (color["view"], depth["view"]) == (1, 2)
        color_ops = [color["load_op"], color["store_op"]]
        return [*color_ops, depth["depth_load_op"], depth["depth_store_op"]]

    assert ops(True, True) == ["clear", "store", "clear", "discard"]
    assert ops(True, False) == ["clear", "store", "clear", "store"]
    assert ops(False, False) == ["load", "store", "load", "store"]
    assert ops(False, True) == ["load", "store", "load", "discard"]
    assert whole["color_attachments"][0]["load_op"] == "clear"
