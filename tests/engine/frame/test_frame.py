"""Frame: the order check, one submission, times that add up."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.frame.frame import Frame, FrameOrderError, FrameTimes, check_order
from engine.frame.kept import Kept
from engine.frame.render_pass import Pass, stage_pass
from engine.gpu.stage import Stage

ADD = """
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> sink: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    sink[id.x] += source[id.x] + 1u;
}
"""


def step(name: str, reads: str = "", writes: str = "") -> Pass:
    return Pass(name, tuple(reads.split()), tuple(writes.split()), lambda *_: None)


def test_a_good_order() -> None:
    check_order(
        [
            step("first", "scene", "a b"),
            step("second", "a", "c"),
            step("update", "c a", "a"),
            step("last", "a b c", "picture"),
        ],
        ["scene"],
    )


def test_a_read_that_nobody_wrote() -> None:
    with pytest.raises(FrameOrderError, match="shade reads hits, which nobody wrote"):
        check_order([step("shade", "hits", "a"), step("traverse", "a", "hits")], [])


def test_overwriting_without_reading() -> None:
    with pytest.raises(FrameOrderError, match="again overwrites a without reading it"):
        check_order([step("first", "", "a"), step("again", "", "a")], [])


def test_what_a_pass_makes_it_may_read_back() -> None:
    # A storage buffer that one pass fills from scratch is read_write in WGSL.
    check_order([step("fill", "queue", "queue"), step("drain", "queue", "hits")], [])


def test_two_passes_of_one_name() -> None:
    with pytest.raises(FrameOrderError, match="two passes are named trace"):
        check_order([step("trace", "", "a"), step("trace", "", "b")], [])


def test_the_check_runs_when_a_frame_is_made(device: Any) -> None:
    with pytest.raises(FrameOrderError):
        Frame(device, [step("trace", "nothing")], {})
    Frame(device, [step("trace", "something")], {}, given=["something"])
    Frame(device, [step("trace", "counter")], {}, cleared={"counter": None})


@pytest.fixture
def add(device: Any, tmp_path: Path) -> Stage:
    path = tmp_path / "add.wgsl"
    path.write_text(ADD)
    return Stage(device, "add", str(path))


def test_reads_and_writes_come_from_the_bindings(add: Stage) -> None:
    item = stage_pass("p", add, 1, arguments="counts", bind={"source": "a", "sink": "b"})
    assert set(item.reads) == {"a", "b", "counts"} and item.writes == ("b",)


def test_a_frame_runs_in_order_in_one_submission(device: Any, add: Stage) -> None:
    resources = {
        name: device.upload(name, np.full(64, value, np.uint32))
        for name, value in dict(a=1, b=50, c=0).items()
    }
    frame = Frame(
        device,
        [
            stage_pass("one", add, 1, bind={"source": "a", "sink": "b"}),
            stage_pass("two", add, (1, 1), bind={"source": "b", "sink": "c"}),
        ],
        resources,
        given=["a", "c"],
        cleared={"b": None},
    )
    for run in (1, 2):
        times = frame.run()
        assert (device.read(resources["b"]) == 2).all()  # cleared each time, then 1 + 1
        assert (device.read(resources["c"]) == 3 * run).all()
    assert times.names == ("one", "two") == tuple(times.passes_ms)


@pytest.mark.parametrize("timed", [True, False])
def test_what_stands_is_not_written_again(device: Any, add: Stage, timed: bool) -> None:
    """By timestamps, where an adapter has them, and by the wall clock; in parts in any case."""
    kept = Kept()
    resources = {name: device.upload(name, np.zeros(64, np.uint32)) for name in "abc"}
    first = "counts", 0
    resources |= {"counts": device.buffer("counts", 16), "kept": kept}
    passes = [
        stage_pass("one", add, 1, bind={"source": "a", "sink": "b"}, kept="kept"),
        stage_pass("two", add, (1, 1), bind={"source": "a", "sink": "c"}, first_unit=first),
    ]
    frame = Frame(device, passes, resources, given=["a", "b", "c"])
    frame.timed = timed and "timestamp-query" in device.features

    def sums() -> tuple[int, int]:
        return int(device.read(resources["b"])[0]), int(device.read(resources["c"])[0])

    assert frame.run().reused == () and sums() == (1, 1)  # nothing is wanted: it runs
    assert frame.run().reused == () and sums() == (2, 2)
    kept.wanted = "this"
    assert frame.run().reused == () and sums() == (3, 3)
    times = frame.run()
    assert times.reused == ("one",) and times.names == ("one", "two") and sums() == (3, 4)
    assert frame.timed or times.passes_ms["one"] == 0 < times.passes_ms["two"]
    assert not np.isnan(times.spans_ms).any() or not frame.timed
    kept.wanted = "that"
    steps = frame.steps(1e-9)
    next(steps)
    steps.close()  # behind the first pass, which stands
    assert sums() == (4, 4)
    *_, last = _results(frame.steps(1e-9))
    assert last.reused == ("one",) and sums() == (4, 5)
    kept.begin()
    assert frame.run().reused == () and sums() == (5, 6)


def _results(steps: Any) -> list[Any]:
    """What a generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return [ended.value]


def test_only_the_start_of_a_buffer_is_cleared(device: Any, add: Stage) -> None:
    resources = {name: device.upload(name, np.full(64, 9, np.uint32)) for name in "ab"}
    one = stage_pass("one", add, 1, bind={"source": "a", "sink": "b"})
    Frame(device, [one], resources, given=["a"], cleared={"b": 16}).run()
    assert device.read(resources["b"]).tolist() == [10] * 4 + [19] * 60


def test_indirect_passes_take_their_counts_from_a_buffer(device: Any, add: Stage) -> None:
    resources = {name: device.upload(name, np.zeros(128, np.uint32)) for name in "ab"}
    counts = np.array([1, 1, 1, 0], np.uint32)
    resources["counts"] = device.upload("counts", counts, "INDIRECT|COPY_DST")
    one = stage_pass("one", add, arguments="counts", bind={"source": "a", "sink": "b"})
    with pytest.raises(FrameOrderError, match="reads counts"):
        Frame(device, [one], resources, given=["a", "b"])
    Frame(device, [one], resources, given=["a", "b", "counts"]).run()
    assert device.read(resources["b"]).tolist() == [1] * 64 + [0] * 64


def test_times_add_up(device: Any, add: Stage) -> None:
    names = "abcdef"
    resources = {name: device.buffer(name, 4 * 64 * 512) for name in names}
    passes = [
        stage_pass(f"pass/{x}", add, 512, bind={"source": x, "sink": y})
        for x, y in zip(names, names[1:], strict=False)
    ]
    frame = Frame(device, passes, resources, given=list(names))
    frame.run()
    times = frame.run()
    if "timestamp-query" not in device.features:
        assert np.isnan(times.total_ms) and np.isnan(times.spans_ms).all()
        return
    spans = times.spans_ms
    assert (spans[:, 0] <= spans[:, 1]).all() and (np.diff(spans[:, 0]) >= 0).all()
    total = sum(times.passes_ms.values())
    assert times.total_ms >= total - max(0.0, -times.gaps_ms)
    assert times.total_ms == pytest.approx(total + times.gaps_ms)
    assert times.total_ms == spans[-1, 1] - spans[0, 0] > 0
    # The frame's span on the GPU lies within what the host waited.
    assert times.total_ms <= times.encode_ms + times.wait_ms


def test_total_and_gaps_by_hand() -> None:
    spans = np.array([[0.0, 2.0], [2.5, 3.0], [3.0, 7.0]])
    times = FrameTimes(("a", "b", "c"), spans, 0.1, 8.0)
    assert times.passes_ms == {"a": 2.0, "b": 0.5, "c": 4.0}
    assert (times.total_ms, times.gaps_ms) == (7.0, 0.5)
